"""A tiny siamese classifier: random numbers as the head of a tiny encoder, written as a training writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.conftest import WIDTH

from munjang.engine.folder import PAIR_CLASSIFIER, fingerprint_encoder, read_folder
from munjang.engine.pair_head import PARTS, PairHead, Part, write_pair_head

LABELS = ("contradiction", "entailment", "중립")
PAIRS = [("the rain", "비가 많이 온다"), ("cat", "a dog was on the train"), ("", "the sun"), ("cat", "cat"), ("눈이 올까요?", "겨울 날씨")]


def keep_head(folder: Path, parts: tuple[Part, ...] = PARTS[:3], labels: tuple[str, ...] = LABELS) -> Path:
    """Put a head with random numbers beside an encoder, as a training does; return the encoder's folder."""
    chance = np.random.default_rng(5)
    shape = (len(labels), len(parts) * WIDTH)
    weight_KF, bias_K = chance.normal(size=shape).astype(np.float32), chance.normal(size=shape[0]).astype(np.float32)
    head = PairHead(labels, parts, weight_KF, bias_K, fingerprint_encoder(read_folder(folder)))
    write_pair_head(head, folder / PAIR_CLASSIFIER)
    return folder
