"""Tuning: weights are chosen by questions or by the library's own titles, stored with it, used by searches, and go with a copy."""

from __future__ import annotations

import pytest

from munjang.errors import DamagedFile, UsageError
from munjang.library.copying import copy_library
from munjang.library.library import Library
from munjang.library.ranking import Hybrid
from munjang.library.search import SearchWeights, read_weights
from munjang.library.tune import tune
from munjang.models.sentence_encoder import SentenceEncoder

WORDS = ["cat", "dog", "rain", "snow", "film", "park", "sea", "mat", "winter", "code"]


def records() -> list[dict[str, object]]:
    return [
        {"id": str(n), "text": f"the {WORDS[n % 10]} and the {WORDS[n // 10]} number{n}", "metadata": {"title": f"number{n}"}}
        for n in range(60)
    ]


@pytest.fixture(params=[None, "1bit"])
def library(request, opened, tiny_bert_folder) -> Library:
    library = opened(SentenceEncoder.load(tiny_bert_folder), token_vectors=request.param)
    library.add(records())
    return library


def test_weights_are_chosen_stored_used_and_copied(library, tmp_path):
    before = library.search("number7", k=3)
    report = tune(library, [(f"number{n}", str(n)) for n in range(60)], folds=3)
    assert (report.source, report.questions) == ("labels", 60)
    assert report.changed == (report.tuned > report.built_in)
    stored = read_weights(library.store.settings().weights, name="a.db")
    assert stored == report.weights
    assert report.tuned >= report.built_in - 0.05
    heavy = SearchWeights(words=9, tokens=0)
    library.write_weights(heavy)
    assert library.search("number7", k=3, rerank=False) == library.search("number7", k=3, by=Hybrid(words=9), rerank=False)
    assert copy_library(library.store, tmp_path / "copy.db") == 60
    with Library.open(tmp_path / "copy.db", create=False) as copy:
        assert read_weights(copy.store.settings().weights, name="copy.db") == heavy
    assert library.check() == []
    library.write_weights(None)
    assert library.search("number7", k=3) == before
    library.write_weights(heavy)
    library.reencode(library.encoder)
    assert library.store.settings().weights is None


def test_titles_are_questions_where_nobody_asks_any(library):
    report = tune(library, write=False)
    assert (report.source, report.questions) == ("titles", 60)
    assert library.store.settings().weights is None


def test_too_few_questions_and_odd_weights_are_refused(library):
    with pytest.raises(UsageError, match="at least 20"):
        tune(library, [("number1", "1")])
    with pytest.raises(UsageError, match="folds"):
        tune(library, folds=1)
    for text in ("[]", "{", '{"words": -1}', '{"tokens": 2}', '{"colour": 1}'):
        with pytest.raises(DamagedFile):
            read_weights(text, name="a.db")
