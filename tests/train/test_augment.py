"""Silver pairs: neighbours by words and by meaning, each once, never the known ones, with scores that recipes read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from munjang.errors import InputError, UsageError
from munjang.train.augment import SilverPair, label_by_cosine, label_pairs, sample_pairs, write_silver
from munjang.types import Vectors

TEXTS = ["cold rain", "cold snow", "warm sun", "warm tea", "green tea", "bread", "cold rain"]


class Lengths:
    """Puts texts on a line by their length, on a half circle so that cosine is distance."""

    dimension, fingerprint = 2, "lengths"

    def encode(self, texts: Iterable[str], /) -> Vectors:
        angles = np.array([len(text) / 10 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Shared:
    """Scores a pair by the share of words it has in common, times `scale`."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        return np.array([len({*a.split()} & {*b.split()}) / 2 * self.scale for a, b in pairs], np.float32)


def test_cosines_label_pairs_and_are_cut_at_zero() -> None:
    silver = label_by_cosine(Lengths(), [("a" * 10, "a" * 15), ("a" * 10, "a" * 40)])
    assert [pair.score for pair in silver] == pytest.approx([np.cos(0.5), 0.0], abs=1e-6)
    assert silver[0].a == "a" * 10
    assert label_by_cosine(Lengths(), [("a", "a")])[0].score == pytest.approx(1.0)


def test_words_find_texts_that_share_them_each_pair_once() -> None:
    pairs = sample_pairs(TEXTS, per_text=2, strategy="bm25")
    assert pairs == [("cold rain", "cold snow"), ("warm sun", "warm tea"), ("warm tea", "green tea")]


def test_meaning_finds_neighbours_and_no_text_is_its_own() -> None:
    pairs = sample_pairs(TEXTS, encoder=Lengths(), per_text=1, strategy="semantic")
    assert all(a != b for a, b in pairs)
    assert all(abs(len(a) - len(b)) <= 3 for a, b in pairs)
    both = sample_pairs(TEXTS, encoder=Lengths(), per_text=1)
    assert {frozenset(pair) for pair in pairs} <= {frozenset(pair) for pair in both}
    assert len({frozenset(pair) for pair in both}) == len(both)


def test_known_pairs_are_left_out_and_others_take_their_place() -> None:
    known = [("cold snow", "cold rain"), ("warm tea", "warm sun")]
    pairs = sample_pairs([*TEXTS, "cold wind"], known=known, per_text=1, strategy="bm25")
    assert not {frozenset(pair) for pair in pairs} & {frozenset(pair) for pair in known}
    assert {"cold wind"} < set().union(*map(set, pairs))


def test_a_limit_draws_the_same_pairs_for_the_same_seed() -> None:
    draws = [sample_pairs(TEXTS, per_text=2, strategy="bm25", limit=2, seed=seed) for seed in (1, 1, 2)]
    assert draws[0] == draws[1]
    assert [len(draw) for draw in draws] == [2, 2, 2]


def test_scores_out_of_range_are_refused_with_the_way_out() -> None:
    pairs = [("cold rain", "cold snow"), ("a b", "a b")]
    assert [pair.score for pair in label_pairs(Shared(), pairs)] == [0.5, 1.0]
    with pytest.raises(UsageError, match=r"from 2.00 to 4.00, expected 0 … 1\n  use sigmoid"):
        label_pairs(Shared(4), pairs)
    assert [pair.score for pair in label_pairs(Shared(4), pairs, labelling="clip")] == [1.0, 1.0]
    assert [pair.score for pair in label_pairs(Shared(4), pairs, labelling="sigmoid")] == pytest.approx([0.880797, 0.982014])


def test_what_cannot_be_sampled_is_named() -> None:
    with pytest.raises(InputError, match="expected two or more"):
        sample_pairs(["one", "one"])
    with pytest.raises(UsageError, match="needs a sentence encoder"):
        sample_pairs(TEXTS)
    with pytest.raises(InputError, match="no new pairs"):
        sample_pairs(["one", "two"], strategy="bm25")
    with pytest.raises(UsageError, match="per_text is 0"):
        sample_pairs(TEXTS, per_text=0)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_every_format_is_read_back_by_a_recipe(suffix: str, tmp_path: Path) -> None:
    from munjang.train.examples import DataSource, read_examples

    silver = [SilverPair('say "rain", twice', "비가 온다", 0.25), SilverPair("a", "b", 1.0)]
    path = tmp_path / f"silver.{suffix}"
    assert write_silver(silver, path) == 2
    found = read_examples(DataSource(str(path), label_range=(0.0, 1.0)))
    assert [(*example.texts, example.label) for example in found.examples] == [(pair.a, pair.b, pair.score) for pair in silver]
    assert found.label_kind == "score"
    with pytest.raises(UsageError, match="no known format"):
        write_silver(silver, tmp_path / "silver.txt")


def test_sampling_needs_no_torch() -> None:
    import subprocess

    code = "import sys; sys.modules['torch'] = None\nimport munjang.train.augment"
    subprocess.run([sys.executable, "-c", code], check=True)
