"""How long it takes to compare n sentences with each other: a cross-encoder over all pairs, or vectors and the nearest of each.

The question that Sentence-BERT was made for. The vectors' way is measured whole. All pairs would take hours, so a sample of random pairs is
scored for a few seconds and the rest is extrapolated: pairs cost the same wherever they stand, as their texts are drawn at random.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from munjang.engine.backbone import read_backbone
from munjang.engine.cross import HEADS
from munjang.engine.folder import ModelFolder
from munjang.engine.modules import TransformerModule
from munjang.engine.weights import SINGLE, find_weights
from munjang.engine.write_folder import write_json
from munjang.errors import UsageError
from munjang.models.samples import load_samples
from munjang.models.save import save_pair_tokenizer
from munjang.text.tokenizer import Tokenizer
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Scorer
from munjang.vectors.topk import top_k

ARCHITECTURES = {
    "bert": "BertForSequenceClassification",
    "electra": "ElectraForSequenceClassification",
    "roberta": "RobertaForSequenceClassification",
    "xlm-roberta": "XLMRobertaForSequenceClassification",
    "camembert": "CamembertForSequenceClassification",
    "mpnet": "MPNetForSequenceClassification",
    "distilbert": "DistilBertForSequenceClassification",
}
"""What a family's model with a head is called."""


def write_untrained_cross_encoder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, seed: int = 0) -> None:
    """Write a cross-encoder with one score into the empty folder `target`; an encoder without attention is refused."""
    from safetensors.numpy import save_file

    base = folder.base
    if not isinstance(base, TransformerModule):
        raise UsageError(f"{folder.path}: has no layers that could read two texts together\n  name a cross-encoder to compare it with")
    weights = find_weights(base.folder)
    width = read_backbone(base, weights).dimension
    architecture = ARCHITECTURES.get(str(base.config["model_type"]))
    if architecture is None:
        raise UsageError(f"{folder.path}: no untrained cross-encoder is made of its family\n  name a cross-encoder to compare it with")
    names, random = HEADS[architecture], np.random.default_rng(seed)
    head = {}
    for name, outputs in ((names.dense, width), (names.out, 1)):
        head[f"{name}.weight"] = random.normal(0, 0.02, (outputs, width)).astype(np.float32)
        head[f"{name}.bias"] = np.zeros(outputs, np.float32)
    save_file({**{name: np.ascontiguousarray(weights[name]) for name in weights}, **head}, target / SINGLE)
    write_json(target / "config.json", {**base.config, "architectures": [architecture], "id2label": {"0": "LABEL_0"}})
    save_pair_tokenizer(tokenizer, base.config, target)


PAIRS_AT_ONCE = 512
"""Pairs that are scored between two looks at the clock."""


@dataclass(frozen=True)
class AllPairs:
    """What both ways take, in seconds, for `n` sentences."""

    n: int
    pairs: int
    sampled_pairs: int
    sampled_seconds: float
    encode_seconds: float
    search_seconds: float

    @property
    def cross_seconds(self) -> float:
        """How long the cross-encoder would take for all pairs, extrapolated from the sample."""
        return self.sampled_seconds / self.sampled_pairs * self.pairs

    @property
    def bi_seconds(self) -> float:
        """How long encoding all sentences and finding each one's nearest took."""
        return self.encode_seconds + self.search_seconds

    @property
    def ratio(self) -> float:
        """How many times longer the cross-encoder takes."""
        return self.cross_seconds / self.bi_seconds

    def to_json(self) -> dict[str, Any]:
        """Return every number; `cross_seconds` is extrapolated."""
        return {**asdict(self), "cross_seconds": self.cross_seconds, "bi_seconds": self.bi_seconds, "ratio": self.ratio}


def time_all_pairs(
    encoder: Encoder,
    scorer: Scorer,
    texts: Sequence[str],
    *,
    seconds: float = 5.0,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> AllPairs:
    """Measure both ways over `texts`; the cross-encoder scores random pairs for about `seconds`."""
    texts = validate_texts(texts)
    n = len(texts)
    if n < 2:
        raise UsageError(f"{n} sentences have no pairs, expected two or more")
    encoder.encode(texts[:8])  # the first run of a session allocates its memory
    started = clock()
    vectors = encoder.encode(texts)
    encoded = clock()
    top_k(vectors, vectors, k=1, exclude_self=True)
    searched = clock()
    sampled, took = _sample(scorer, texts, seconds, seed, clock)
    return AllPairs(n, n * (n - 1) // 2, sampled, took, encoded - started, searched - encoded)


def number_samples(count: int) -> list[str]:
    """Return so many different sentences: the English ones of the sample collection over and over, each with a number.

    >>> number_samples(2)[1].split()[-1]
    '2'
    """
    texts = [sample.text for sample in load_samples() if sample.language == "en"]
    return [f"{texts[number % len(texts)]} {number + 1}" for number in range(count)]


def _sample(scorer: Scorer, texts: Sequence[str], seconds: float, seed: int, clock: Callable[[], float]) -> tuple[int, float]:
    random = np.random.default_rng(seed)
    scorer.predict(_draw_pairs(texts, 8, random))
    done, took = 0, 0.0
    while done == 0 or took < seconds:
        pairs = _draw_pairs(texts, PAIRS_AT_ONCE, random)
        started = clock()
        scorer.predict(pairs)
        took += clock() - started
        done += len(pairs)
    return done, took


def _draw_pairs(texts: Sequence[str], count: int, random: np.random.Generator) -> list[tuple[str, str]]:
    """Return pairs of different texts; drawing the second from one place less leaves the first out."""
    firsts = random.integers(0, len(texts), count)
    seconds = random.integers(0, len(texts) - 1, count)
    seconds += seconds >= firsts
    return [(texts[a], texts[b]) for a, b in zip(firsts.tolist(), seconds.tolist(), strict=True)]
