"""The promises about topics, on 7,000 Korean bills. The vectors are a random projection of the words: the promises hold for any vectors."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from munjang.analyze.topics.assign import assign_topics
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.saving import load_topics, save_topics
from munjang.analyze.topics.topic_words import bag_words
from munjang.text.tagging import choose_tagger

DATA = Path(__file__).parents[4] / "shared/data/korean-assembly-bills/bills_14x500.tsv.gz"


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_file(), reason="the bills are not there")
def test_bills_have_sound_topics(tmp_path: Path) -> None:
    pytest.importorskip("kiwipiepy", reason="Kiwi is not installed")
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        texts = [row["text"] for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    bag = bag_words(texts, choose_tagger("kiwi"))
    directions = np.random.default_rng(0).standard_normal((len(bag.vocabulary), 64)) * np.log(len(bag) / bag.document_counts())[:, None]
    vectors = np.zeros((len(bag), 64))
    np.add.at(vectors, bag.rows(), directions[bag.terms])
    model = fit_topics(texts, vectors=vectors)
    assert model.outliers <= 0.2 * len(texts)
    save_topics(model, tmp_path / "model")
    assert (assign_topics(load_topics(tmp_path / "model"), texts, vectors=vectors).labels == model.labels).all()
    # In the texts, as Kiwi reads them, every topic word is a noun or foreign; none is a particle or an ending.
    tags: dict[str, set[str]] = {}
    for morphemes in choose_tagger("kiwi").tag(texts[::10]):
        for each in morphemes:
            tags.setdefault(each.form.casefold(), set()).add(each.tag)
    words = {word for topic in model.topics for word, _ in topic.words}
    assert all(tags.get(word, {"NNG"}) & {"NNG", "NNP", "SL", "SH"} for word in words)
