"""A query and documents → a ranking, by any model that scores pairs of texts.

A cross-encoder is one, and so is a sentence encoder whose tokens are compared (`late_reranker.py`).
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, ClassVar

from munjang.errors import UsageError
from munjang.models.long_text import TruncationWarning
from munjang.models.pair_scores import DEFAULT_SCORE, PairScores, ScoreKind
from munjang.options import Option
from munjang.other_names import PREDICT, RANK, explain_other_names
from munjang.tables import Row, Table
from munjang.text.tokenizer import Tokenizer
from munjang.text.validate_texts import validate_text, validate_texts
from munjang.types import Vectors
from munjang.wording import brief_repr, count, plural


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


class Ranker(ABC):
    """A model that scores pairs of texts, and so orders documents by a query. One may be used from many threads."""

    name: str
    tokenizer: Tokenizer
    max_length: int | None
    """How many tokens are read; None where nothing limits them."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels' names; one label means a score."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short name that changes whenever the scores would."""

    @property
    @abstractmethod
    def share(self) -> float:
        """Its weight when it re-ranks the hits of a search."""

    @abstractmethod
    def predict_with_report(
        self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False
    ) -> PairScores:
        """Score pairs and report which were truncated; never warns."""

    @explain_other_names(PREDICT)
    def predict(self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False) -> Vectors:
        """Return one score per pair, shape (n,), or one row of label scores per pair, shape (n, labels)."""
        scored = self.predict_with_report(pairs, score=score, progress=progress)
        if scored.cut:
            self._warn_of_cut(len(scored.cut), len(scored.scores), in_python="predict_with_report says which")
        return scored.scores

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

    def _warn_of_cut(self, cut: int, seen: int, *, in_python: str) -> None:
        fact = f"{cut:,} of {count(seen, 'pair')} {plural(cut, 'is')} longer than {self.max_length} tokens; not read to the end"
        warnings.warn(TruncationWarning(fact, in_python=in_python), stacklevel=3)


def _steps(count: int, deadline: float | None) -> Iterator[range]:
    """Yield all documents at once, or a few at a time when there is a deadline to look at."""
    step = count if deadline is None else 16
    return (range(start, min(start + step, count)) for start in range(0, count, max(step, 1)))
