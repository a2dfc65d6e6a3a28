"""A dev file of any kind and an encoder → the one number by which versions of a model are compared.

Scored pairs give Spearman of the cosine, same/different pairs average precision, triplets accuracy, plain pairs the accuracy of finding the
partner. Intervals and everything else are left to `munjang evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from munjang.data import AnyDataset, LabelledPair, ReadOptions, ScoredPair, TextPair, Triplet, read_any
from munjang.errors import InputError
from munjang.evaluate.pairs import evaluate_pairs
from munjang.evaluate.sts import evaluate_sts
from munjang.evaluate.translation import evaluate_translation
from munjang.evaluate.triplets import evaluate_triplets
from munjang.types import Encoder


@dataclass(frozen=True)
class DevScore:
    """One number from 0 to 1, or −1 to 1 for a correlation, and what it is."""

    measure: str
    value: float


def read_dev_file(path: Path, options: ReadOptions) -> AnyDataset:
    """Return the rows of a dev file, or say which kinds there are."""
    found = read_any(path, options)
    first = found.rows[0] if found.rows else None
    if not isinstance(first, ScoredPair | LabelledPair | TextPair | Triplet):
        raise InputError(f"{found.source}: {found.layout}, expected scored pairs, same/different pairs, triplets or pairs to measure on")
    return found


def dev_score(encoder: Encoder, data: AnyDataset) -> DevScore:
    """Return the deciding number of a model on a dev file."""
    rows = data.rows
    scored = [row for row in rows if isinstance(row, ScoredPair)]
    if scored:
        return DevScore("spearman_cosine", evaluate_sts(encoder, scored, worst=0, resamples=0).scores["spearman_cosine"])
    labelled = [row for row in rows if isinstance(row, LabelledPair)]
    if labelled:
        return DevScore("cosine_ap", evaluate_pairs(encoder, labelled, resamples=0).scores["cosine_ap"])
    triplets = [row for row in rows if isinstance(row, Triplet)]
    if triplets:
        return DevScore("cosine_accuracy", evaluate_triplets(encoder, triplets, resamples=0).scores["cosine_accuracy"])
    pairs = [row for row in rows if isinstance(row, TextPair)]
    return DevScore("mean_accuracy", evaluate_translation(encoder, pairs, resamples=0).mean_accuracy)
