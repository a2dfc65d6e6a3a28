"""A model and texts → texts and tokens per second, and which share of the machine's arithmetic that is.

The routes and the matrix product that stands for the machine's peak take turns within one measurement, so that a noisy machine disturbs all
alike. The median of a route's rounds counts, and the best of the matrix product's. On a busy machine even that can come out below what a
route reaches; then the peak was disturbed, no share is given, and `Measured.peak_disturbed` says so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from munjang.engine.modules import TransformerModule
from munjang.models.samples import load_samples
from munjang.models.sentence_encoder import SentenceEncoder

PEAK_SIDE = 2_048  # of the square matrices that are multiplied
SENTENCES_PER_PASSAGE = 10


@dataclass(frozen=True)
class Speed:
    """How fast one route is on one kind of text."""

    texts: str
    compute: str
    texts_per_second: float
    tokens_per_second: float
    gflops: float
    share_of_peak: float | None
    """Of the float32 peak; None for int8, which has another, and where the peak was disturbed."""
    rounds: int


@dataclass(frozen=True)
class Measured:
    """All routes, and the machine's peak in the same minutes."""

    sgemm_gflops: float
    peak_disturbed: bool
    routes: list[Speed]


def sample_texts() -> dict[str, list[str]]:
    """Return short sentences, and passages made of them."""
    texts = [sample.text for sample in load_samples()]
    passages = [" ".join(texts[start : start + SENTENCES_PER_PASSAGE]) for start in range(0, len(texts), SENTENCES_PER_PASSAGE)]
    return {"short": texts, "passages": passages}


def sgemm_gflops() -> float:
    """Return the GFLOP/s of float32 that numpy's matrix product reaches now."""
    a = np.full((PEAK_SIDE, PEAK_SIDE), 0.5, np.float32)
    start = time.perf_counter()
    np.matmul(a, a)
    return 2 * PEAK_SIDE**3 / (time.perf_counter() - start) / 1e9


def measure(models: Mapping[str, SentenceEncoder], texts: Mapping[str, Sequence[str]], *, seconds: float) -> Measured:
    """Measure every model on every kind of text, for about `seconds` each; models are named by how they compute."""
    one = next(iter(models.values()))
    peak = max(sgemm_gflops(), sgemm_gflops())
    times: dict[tuple[str, str], list[float]] = {(kind, name): [] for kind in texts for name in models}
    for kind, some in texts.items():
        for model in models.values():
            model.encode_with_report(some[:8])
        until = time.perf_counter() + seconds * len(models)
        while not times[kind, next(iter(models))] or time.perf_counter() < until:
            peak = max(peak, sgemm_gflops())
            for name, model in models.items():
                times[kind, name].append(_seconds(model, some))
    lengths = {kind: _lengths(one, some) for kind, some in texts.items()}
    work = {kind: sum(flops(one, length) for length in lengths[kind]) / 1e9 for kind in texts}
    disturbed = any(work[kind] / median(took) > peak for (kind, name), took in times.items() if name == "float32")
    routes = []
    for (kind, name), rounds in times.items():
        took = median(rounds)
        share = work[kind] / took / peak if name == "float32" and not disturbed else None
        routes.append(Speed(kind, name, len(texts[kind]) / took, sum(lengths[kind]) / took, work[kind] / took, share, len(rounds)))
    return Measured(peak, disturbed, routes)


def _seconds(model: SentenceEncoder, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    model.encode_with_report(texts)
    return time.perf_counter() - start


def flops(model: SentenceEncoder, tokens: int) -> float:
    """Return the multiplications and additions of the matrix products for one text."""
    base = model.folder.base
    if not isinstance(base, TransformerModule):
        return 0.0
    width = model.engine.hidden_size
    inner = int(base.config.get("intermediate_size") or base.config.get("hidden_dim") or 4 * width)
    per_token = 2 * (4 * width * width + 2 * width * inner) + 4 * tokens * width
    return float(model.engine.layers * tokens * per_token)


def _lengths(model: SentenceEncoder, texts: Sequence[str]) -> list[int]:
    lengths = model.encode_with_report(texts).tokens.tolist()
    return [min(length, model.max_length or length) for length in lengths]
