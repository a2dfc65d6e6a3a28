"""The dev score: each kind of file gives the number that `munjang evaluate` gives, and a model gone wrong is said to be so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.evaluate.pairs import score_pairs
from munjang.evaluate.sts import score_sts
from munjang.evaluate.translation import score_translation
from munjang.evaluate.triplets import score_triplets
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train.cross_dev import read_cross_dev
from munjang.train.dev import read_dev
from munjang.train.examples import DataSource
from munjang.types import Vectors

ROWS = [("the rain", "비가 온다", "a cat"), ("a dog", "the dog was", "winter"), ("coffee", "a book", "river"), ("snow", "눈이 온다", "sun")]
A, B, C = ([row[at] for row in ROWS] for at in range(3))
LABELS = [1, 0, 0, 1]


class Broken:
    """An encoder, and a scorer, whose numbers are gone."""

    name, fingerprint, dimension, max_length = "broken", "0", 4, 8

    def encode(self, texts: Iterable[str], /) -> Vectors:
        return np.full((len(list(texts)), self.dimension), np.nan, np.float32)

    def predict(self, pairs: Iterable[tuple[str, str]], /) -> Vectors:
        return np.full(len(list(pairs)), np.nan, np.float32)


def source(folder: Path, header: str, rows: list[tuple[object, ...]], **options: object) -> DataSource:
    path = folder / "dev.tsv"
    path.write_text("\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return DataSource(str(path), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["scored", "labelled", "triplets", "pairs"])
def test_a_file_gives_the_number_of_its_kind(kind: str, tiny_bert_folder: Path, tmp_path: Path) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    a, b, c = (model.encode(column) for column in (A, B, C))
    scores = [0.9, 0.1, 0.4, 0.6]
    if kind == "scored":
        given = source(tmp_path, "sentence1\tsentence2\tscore", list(zip(A, B, scores, strict=True)), label_range=(0.0, 1.0))
        expected = "spearman_cosine", score_sts(a, b, scores, resamples=0, worst=0).scores["spearman_cosine"]
    elif kind == "labelled":
        given = source(tmp_path, "sentence1\tsentence2\tlabel", list(zip(A, B, LABELS, strict=True)))
        expected = "cosine_ap", score_pairs(a, b, LABELS, resamples=0).scores["cosine_ap"]
    elif kind == "triplets":
        given = source(tmp_path, "anchor\tpositive\tnegative", ROWS)
        expected = "cosine_accuracy", score_triplets(a, b, c, resamples=0).scores["cosine_accuracy"]
    else:
        given = source(tmp_path, "sentence1\tsentence2", list(zip(A, B, strict=True)), kind="pairs")
        expected = "mean_accuracy", score_translation(a, b, resamples=0).mean_accuracy
    name, found, _ = read_dev(given, seed=1).score(model)
    assert (name, found[name]) == (expected[0], pytest.approx(expected[1], abs=1e-6))


def test_a_model_whose_numbers_are_gone_is_refused_with_advice(tmp_path: Path) -> None:
    given = source(tmp_path, "sentence1\tsentence2\tlabel", list(zip(A, B, LABELS, strict=True)))
    with pytest.raises(InputError, match="vectors that are not finite numbers\n  lower the learning rate; the last checkpoint is intact"):
        read_dev(given, seed=1).score(Broken())
    with pytest.raises(InputError, match="scores that are not finite numbers\n  lower the learning rate; the last checkpoint is intact"):
        read_cross_dev(given, seed=1, labels=("LABEL_0",)).score(Broken())  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [read_dev, lambda given, seed: read_cross_dev(given, ("LABEL_0",), seed=seed)])
def test_a_file_whose_rows_all_have_one_label_is_refused(read: Any, tmp_path: Path) -> None:
    given = source(tmp_path, "sentence1\tsentence2\tscore", [(a, b, 0.5) for a, b in zip(A, B, strict=True)], label_range=(0.0, 1.0))
    with pytest.raises(InputError, match="every row of the dev file has the same label"):
        read(given, seed=1)


def test_a_model_that_gives_one_answer_scores_nothing_instead_of_no_number(tmp_path: Path) -> None:
    class Same(Broken):
        def encode(self, texts: Iterable[str], /) -> Vectors:
            return np.ones((len(list(texts)), self.dimension), np.float32)

        def predict(self, pairs: Iterable[tuple[str, str]], /) -> Vectors:
            return np.full(len(list(pairs)), 0.5, np.float32)

    given = source(tmp_path, "sentence1\tsentence2\tscore", list(zip(A, B, LABELS, strict=True)), label_range=(0.0, 1.0), kind="scored")
    assert read_dev(given, seed=1).score(Same()).scores["spearman_cosine"] == 0
    assert read_cross_dev(given, seed=1, labels=("LABEL_0",)).score(Same()).scores["spearman"] == 0  # type: ignore[arg-type]
