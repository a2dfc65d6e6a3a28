from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from munjang.data.rows import TextPair, Triplet
from munjang.errors import InputError, UsageError
from munjang.train.mine import mine_negatives, write_triplets
from munjang.types import Vectors


class Angles:
    """A text "40" lies at forty degrees, so every cosine is known."""

    dimension, fingerprint = 2, "angles"

    def encode(self, texts: Iterable[str], /) -> Vectors:
        angles = np.radians([float(text.split()[0]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


PAIRS = [TextPair("0", "20 yes", "a line 1"), TextPair("90", "80 yes", "a line 2")]
CORPUS = ["5 no", "15 no", "30 no", "60 no", "20 yes", "80 yes", "180 no"]


def _negatives(**options: object) -> list[list[str]]:
    mined = mine_negatives(Angles(), PAIRS, CORPUS, **options)  # type: ignore[arg-type]
    return [[triplet.negative for triplet in mined.triplets if triplet.anchor == pair.a] for pair in PAIRS]


def test_the_nearest_texts_that_are_not_the_answer_are_taken_in_order() -> None:
    assert _negatives(negatives=2) == [["5 no", "15 no"], ["60 no", "30 no"]]
    assert _negatives(negatives=1, first_rank=1) == [["15 no"], ["30 no"]]


def test_margins_keep_out_what_is_as_near_as_the_positive() -> None:
    assert _negatives(negatives=1, absolute_margin=0.0) == [["30 no"], ["60 no"]]
    assert _negatives(negatives=1, absolute_margin=0.1) == [["60 no"], ["60 no"]]
    assert _negatives(negatives=1, relative_margin=0.6) == [["80 yes"], ["20 yes"]]
    assert _negatives(negatives=2, max_score=0.9, min_score=0.0)[0] == ["30 no", "60 no"]


def test_an_answer_of_the_same_query_is_never_its_negative() -> None:
    pairs = [*PAIRS, TextPair("0", "5 no")]
    mined = mine_negatives(Angles(), pairs, CORPUS, negatives=5)
    assert not [triplet for triplet in mined.triplets if triplet.anchor == "0" and triplet.negative in ("5 no", "20 yes")]


def test_what_was_not_found_is_counted() -> None:
    mined = mine_negatives(Angles(), PAIRS, CORPUS, negatives=2, max_score=-0.5)
    assert (mined.pairs, mined.short, mined.empty) == (2, 2, 1)


def test_samples_follow_the_seed() -> None:
    drawn = [_negatives(negatives=2, sampling="random", seed=seed) for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1]
    assert any(other != drawn[0] for other in drawn[2:])


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv", ".csv"])
def test_triplets_are_written_so_that_they_read_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    assert write_triplets([Triplet('a "quoted", text', "b", "c\td")], path) == 1
    if suffix == ".jsonl":
        assert json.loads(path.read_text())["negative"] == "c\td"
    elif suffix == ".csv":
        assert list(csv.reader(path.read_text().splitlines()))[1] == ['a "quoted", text', "b", "c\td"]
    else:
        assert path.read_text().splitlines()[1].split("\t") == ['a "quoted", text', "b", "c d"]


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="negatives is 0"):
        mine_negatives(Angles(), PAIRS, CORPUS, negatives=0)
    with pytest.raises(UsageError, match="ranks"):
        mine_negatives(Angles(), PAIRS, CORPUS, first_rank=5, last_rank=5)
    with pytest.raises(InputError, match="corpus is empty"):
        mine_negatives(Angles(), PAIRS, [])
    with pytest.raises(UsageError, match="no known format"):
        write_triplets([], tmp_path / "x.docx")
