"""LateReranker: documents in the order in which their tokens answer a query's (late interaction, MaxSim), by a sentence encoder.

Every token of the query looks for the token of the document that is most like it; the score is the mean of these cosines, usually 0.3 to
0.9. Query and documents are read apart, each with the model's prompt for it, so it is as fast as encoding them, and the model that
finds candidates also orders them. A library that keeps token vectors does the same on their codes (`library/late.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from munjang.models.pair_scores import DEFAULT_SCORE, PairScores, ScoreKind, choose_activation
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.ranking import Ranker
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import ComputeOption, DeviceOption, EngineOption
from munjang.other_names import LOAD, PREDICT, explain_other_names
from munjang.text.validate_texts import validate_pairs
from munjang.types import DEFAULT_COMPUTE, DEFAULT_DEVICE, DEFAULT_ENGINE, Vectors
from munjang.vectors.maxsim import SKIP, WEIGHT
from munjang.vectors.similarity import normalize
from munjang.wording import count, name_facts, quote_place


class LateReranker(Ranker):
    """Ranks documents by a sentence encoder's token vectors; no other model is needed.

    >>> LateReranker.load().rank("winter weather", ["Bread rises.", "It snows."]).documents[0].text
    'It snows.'
    """

    labels = ("maxsim",)
    share = WEIGHT

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder, self.name = encoder, encoder.name
        reads = encoder.for_documents().model
        self.tokenizer, self.max_length = reads.tokenizer, reads.max_length

    def __repr__(self) -> str:
        limit = [] if self.max_length is None else [f"at most {count(self.max_length, 'token')}"]
        return name_facts("LateReranker", [quote_place(self.name), self.encoder.compute, *limit])

    @classmethod
    @explain_other_names(LOAD)
    def load(
        cls,
        name: str | Path | None = None,
        *,
        compute: ComputeOption = DEFAULT_COMPUTE,
        threads: int | None = None,
        max_length: int | None = None,
        device: DeviceOption = DEFAULT_DEVICE,
        engine: EngineOption = DEFAULT_ENGINE,
    ) -> LateReranker:
        """Load a sentence encoder by name or path to rank with; without one, the default model. Options as in SentenceEncoder.load."""
        return cls(SentenceEncoder.load(name, compute=compute, threads=threads, max_length=max_length, device=device, engine=engine))

    @property
    def fingerprint(self) -> str:
        """A short name that changes whenever the scores would."""
        return f"late {self.encoder.fingerprint}"

    @explain_other_names(PREDICT)
    def predict_with_report(
        self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False
    ) -> PairScores:
        """Score pairs of a query and a text and report in which a text was truncated; never warns.

        The score is a mean of cosines, whatever `score` says, but "sigmoid" and "softmax" ask for a number from 0 to 1: below 0 is 0.
        """
        listed, activation = validate_pairs(pairs), choose_activation(score, "identity")
        queries, documents = self.encoder.for_queries(warn=False), self.encoder.for_documents(progress=progress, warn=False)
        asked: dict[str, list[int]] = {}
        for number, (query, _) in enumerate(listed):
            asked.setdefault(query, []).append(number)
        scores_N = np.zeros(len(listed), np.float32)
        for numbers, tokens_QD in zip(asked.values(), _read_tokens(queries, list(asked)), strict=True):
            texts = [listed[number][1] for number in numbers]
            scores_N[numbers] = documents.encode_with_tokens(texts, keep=partial(_mean_of_best, tokens_QD), skip=SKIP)[1]
        return PairScores(scores_N if activation == "identity" else np.clip(scores_N, 0, 1), _find_long(queries, documents, listed))


def _read_tokens(encoder: PromptedEncoder, texts: Sequence[str]) -> list[Vectors]:
    return encoder.encode_with_tokens(texts, keep=_unit, skip=SKIP)[1]


def _unit(rows_TD: Vectors) -> Vectors:
    return normalize(rows_TD) if len(rows_TD) else rows_TD


def _mean_of_best(query_QD: Vectors, rows_TD: Vectors) -> float:
    if not len(query_QD) or not len(rows_TD):
        return 0.0
    return float((query_QD @ _unit(rows_TD).T).max(axis=1).mean())


def _find_long(queries: PromptedEncoder, documents: PromptedEncoder, pairs: Sequence[tuple[str, str]]) -> list[int]:
    """Return the numbers of the pairs in which a text is longer than its encoder reads."""
    cut: set[int] = set()
    for side, encoder in enumerate((queries, documents)):
        limit, texts = encoder.model.max_length, [pair[side] for pair in pairs]
        if limit is not None and texts:
            cut |= {number for number, tokens in enumerate(encoder.count_tokens(texts)) if tokens > limit}
    return sorted(cut)
