"""CrossEncoder: pairs of texts → scores, and nothing else.

Both texts go through the encoder together, which is more exact than comparing vectors and far slower: use it to order a few candidates. A
pair beyond the model's limit loses the end of its second text, never of its first, unless the first alone does not fit;
`predict_with_report` says which pairs were cut. One cross-encoder may be used from many threads.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from munjang.engine.cross import CrossEngine, PairIds
from munjang.engine.folder import ModelFolder, fingerprint, read_folder
from munjang.engine.modules import TransformerModule
from munjang.errors import UsageError
from munjang.limits import LIMITS
from munjang.models.batch_encoder import check_vocabulary
from munjang.models.long_text import TruncationWarning
from munjang.models.open_engine import check_engine, open_cross_engine
from munjang.models.pair_scores import (
    DEFAULT_SCORE,
    LabelScorer,
    PairScores,
    ScoreKind,
    activate_logits,
    choose_activation,
    make_label_scorer,
)
from munjang.models.progress import Advance, progress_bar
from munjang.models.registry import resolve_reranker
from munjang.models.save import save_cross_folder
from munjang.options import ComputeOption, DeviceOption, EngineOption, Option
from munjang.other_names import LOAD, PREDICT, RANK, explain_other_names
from munjang.tables import Row, Table
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer, load_tokenizer
from munjang.text.validate_texts import validate_pairs, validate_text, validate_texts
from munjang.types import DEFAULT_COMPUTE, DEFAULT_DEVICE, DEFAULT_ENGINE, Compute, Device, Vectors
from munjang.wording import brief_repr, count, name_facts, plural, quote_place

FEWEST_DOCUMENT_TOKENS = 8
"""A query is only cut so far that this much of a document can be read."""


@brief_repr
@dataclass(frozen=True)
class RankedText:
    """One document of a ranking."""

    index: int
    score: float
    text: str


@brief_repr
@dataclass(frozen=True)
class Ranking(Table):
    """Documents, best first, and how far the scoring got."""

    columns: ClassVar[tuple[str, ...]] = ("index", "score", "text")

    documents: list[RankedText]
    scored: int
    """How many documents were scored; the rest follow in the order they came in, without a score."""
    cut: list[int] = field(default_factory=list)
    """The numbers of documents that were too long with the query to be read to their end."""

    def to_rows(self) -> list[Row]:
        """Return the documents, best first."""
        return [asdict(each) for each in self.documents]


class CrossEncoder:
    """Scores pairs of texts.

    >>> model = CrossEncoder.load("reranker")                                       # doctest: +SKIP
    >>> model.rank("winter weather", ["It snows.", "Bread rises."])                 # doctest: +SKIP
    """

    def __init__(
        self, folder: ModelFolder, tokenizer: Tokenizer, engine: CrossEngine, *, name: str, compute: Compute, max_length: int
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.engine = engine
        self.name = name
        self.compute = compute
        self.max_length = max_length

    def __repr__(self) -> str:
        where = [] if self.device == "cpu" else [f"on {self.device}"]
        facts = [count(len(self.labels), "label"), self.compute, *where, f"at most {count(self.max_length, 'token')}"]
        return name_facts("CrossEncoder", [quote_place(self.name), *facts])

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
    ) -> CrossEncoder:
        """Load a cross-encoder by name or path; without one, the default re-ranker. `device` and `engine` as in SentenceEncoder.load."""
        check_engine(engine, device, compute)
        found = resolve_reranker(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a plain encoder folder is refused below, so its pooling need not be assumed aloud
            folder = read_folder(found.path)
        started = open_cross_engine(folder, engine=engine, device=device, compute=compute, threads=threads)
        base = folder.base
        assert isinstance(base, TransformerModule)  # what the engine checked
        tokenizer = load_tokenizer(base.folder)
        check_vocabulary(folder, tokenizer, started.vocabulary_size)
        limits = (folder.max_length, tokenizer.max_length, started.max_tokens, max_length)
        limit = min(limit for limit in limits if limit is not None)
        if limit < tokenizer.pair_special_count + FEWEST_DOCUMENT_TOKENS:
            raise UsageError(f"a limit of {limit} tokens leaves no room for two texts")
        return cls(folder, tokenizer, started, name=found.name, compute=started.placement.compute, max_length=limit)

    @property
    def device(self) -> Device:
        """Where the model computes; never "auto"."""
        return self.engine.placement.device

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names; one label means a score."""
        return self.engine.head.labels

    @property
    def share(self) -> float:
        """Its weight when it re-ranks the hits of a search, as set in its folder; 1 by default."""
        return self.engine.head.share

    @cached_property
    def fingerprint(self) -> str:
        """A short name that changes whenever the scores would."""
        return fingerprint(self.folder, settings=f"cross {self.compute} {self.max_length}")

    @explain_other_names(PREDICT)
    def predict(self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False) -> Vectors:
        """Return one score per pair, shape (n,), or one row of label scores per pair, shape (n, labels)."""
        scored = self.predict_with_report(pairs, score=score, progress=progress)
        if scored.cut:
            self._warn_of_cut(len(scored.cut), len(scored.scores), in_python="predict_with_report says which")
        return scored.scores

    @explain_other_names(PREDICT)
    def predict_with_report(
        self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False
    ) -> PairScores:
        """Score pairs and report which were truncated; never warns."""
        listed = validate_pairs(pairs)
        logits = np.zeros((len(listed), len(self.labels)), np.float32)
        cut: list[int] = []
        with progress_bar("score", len(listed), shown=progress) as advance:
            for start in range(0, len(listed), LIMITS.stream_texts):
                block = listed[start : start + LIMITS.stream_texts]
                ids, too_long = self._ids(block)
                cut += [start + number for number in too_long]
                self._fill(logits[start : start + len(block)], ids, advance)
        scores = activate_logits(logits, choose_activation(score, self.engine.head.activation))
        return PairScores(scores[:, 0], cut) if len(self.labels) == 1 else PairScores(scores, cut, self.labels)

    @explain_other_names(RANK)
    def rank(
        self,
        query: str,
        documents: Sequence[str],
        /,
        *,
        k: Annotated[int | None, Option("Number of results. Default: all.", min=1, flags=("--top", "-k"))] = None,
        budget_seconds: Annotated[float | None, Option("Stop scoring after this many seconds.", min=0, flags=("--budget",))] = None,
        progress: bool = False,
    ) -> Ranking:
        """Rank documents by how well they answer the query, best first.

        With `budget_seconds`, documents are scored in the given order until the time is up; the rest follow in their old order
        with the score NaN, and `scored` says how many were scored. `k` limits the result, not the scoring.
        """
        if len(self.labels) != 1:
            raise UsageError(f"{self.name}: has {count(len(self.labels), 'label')}; ranking needs a model with one score")
        query, texts = validate_text(query, name="query"), validate_texts(documents, name="documents")
        if k is not None and (not hasattr(k, "__index__") or k < 1):
            raise UsageError(f"k is {k!r}, expected a whole number, at least 1, or None for all documents")
        deadline = None if budget_seconds is None else time.monotonic() + budget_seconds
        scores: list[float] = []
        cut: list[int] = []
        for block in _steps(len(texts), deadline):
            if deadline is not None and scores and time.monotonic() >= deadline:
                break
            pairs = [(query, texts[number]) for number in block]
            found = self.predict_with_report(pairs, progress=progress and deadline is None)
            cut += [block[number] for number in found.cut]
            scores += found.scores.tolist()
        if cut:
            self._warn_of_cut(len(cut), len(scores), in_python="the ranking's `cut` says which")
        order = sorted(range(len(scores)), key=lambda number: -scores[number])
        ranked = [RankedText(number, scores[number], texts[number]) for number in order]
        ranked += [RankedText(number, float("nan"), texts[number]) for number in range(len(scores), len(texts))]
        return Ranking(ranked[:k], len(scores), cut)

    @property
    def label_score(self) -> ScoreKind:
        """What scores of labels are where nobody says: several logits without an activation mean classes that exclude each other."""
        return "softmax" if len(self.labels) > 1 and self.engine.head.activation == "identity" else "model"

    def for_label(self, label: str, /, *, score: ScoreKind | None = None) -> LabelScorer:
        """Return this model as a Scorer of one of its labels, such as "entailment"; its score is the label's probability."""
        return make_label_scorer(self, label, score=score or self.label_score)

    def save(self, path: str | Path) -> None:
        """Write a folder that Munjang and sentence-transformers' CrossEncoder load with equal scores."""
        save_cross_folder(self.folder, self.tokenizer, Path(path), max_length=self.max_length, activation=self.engine.head.activation)

    def _warn_of_cut(self, cut: int, seen: int, *, in_python: str) -> None:
        fact = f"{cut:,} of {count(seen, 'pair')} {plural(cut, 'is')} longer than {self.max_length} tokens; not read to the end"
        warnings.warn(TruncationWarning(fact, in_python=in_python), stacklevel=3)

    def _ids(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairIds], list[int]]:
        unique = list(dict.fromkeys(text for pair in pairs for text in pair))
        plain = dict(zip(unique, self.tokenizer.encode_plain(unique), strict=True))
        room = self.max_length - self.tokenizer.pair_special_count
        fitted = [fit_pair(plain[first], plain[second], room) for first, second in pairs]
        too_long = [number for number, (first, second) in enumerate(pairs) if len(plain[first]) + len(plain[second]) > room]
        return [self.tokenizer.wrap_pair(first, second) for first, second in fitted], too_long

    def _fill(self, logits: Vectors, ids: list[PairIds], advance: Advance) -> None:
        place = self.engine.placement
        batches = plan_batches([len(one) for one, _ in ids], budget=place.batch_tokens, efficient=place.efficient_tokens)
        for batch, rows in zip(batches, self.engine.logits_of_batches([[ids[n] for n in batch] for batch in batches]), strict=True):
            logits[batch] = rows
            advance(len(batch))


def fit_pair(first: Sequence[int], second: Sequence[int], room: int) -> tuple[Sequence[int], Sequence[int]]:
    """Cut the second text to fit; the first only where it would leave no room at all."""
    if len(first) + len(second) <= room:
        return first, second
    kept = first[: max(room - min(len(second), FEWEST_DOCUMENT_TOKENS), 0)]
    return kept, second[: room - len(kept)]


def _steps(count: int, deadline: float | None) -> Iterator[range]:
    """Yield all documents at once, or a few at a time when there is a deadline to look at."""
    step = count if deadline is None else 16
    return (range(start, min(start + step, count)) for start in range(0, count, max(step, 1)))
