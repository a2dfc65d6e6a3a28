"""What data sets are made of: typed rows, and the `Dataset` that says where they came from and how they were understood.

These are nouns only; `read.py` makes them from files, and evaluation and training consume them. `where` names file and line for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

from munjang.wording import brief_repr

Kind: TypeAlias = Literal["scored", "labelled", "pairs", "triplets", "texts"]
Scale: TypeAlias = tuple[float, float]
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""Query → document → score."""
Judgements: TypeAlias = Mapping[str, Mapping[str, int]]
"""Query → document → grade."""

SAME, DIFFERENT = "1", "0"
NLI_LABELS = ("contradiction", "entailment", "neutral")


@brief_repr
@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Two sentences and how alike they are, 0 (nothing shared) to 1 (same meaning)."""

    a: str
    b: str
    score: float
    genre: str = ""
    where: str = ""


@brief_repr
@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two sentences and the name of their relation: an NLI label, or SAME ("1") and DIFFERENT ("0")."""

    a: str
    b: str
    label: str
    where: str = ""


@brief_repr
@dataclass(frozen=True, slots=True)
class TextPair:
    """Two sentences that belong together: a translation, a question and its answer."""

    a: str
    b: str
    where: str = ""


@brief_repr
@dataclass(frozen=True, slots=True)
class Triplet:
    """A sentence, one nearer to it and one farther from it."""

    anchor: str
    positive: str
    negative: str
    where: str = ""


@brief_repr
@dataclass(frozen=True, slots=True)
class LabelledText:
    """A sentence and the class or group that it belongs to."""

    text: str
    label: str
    where: str = ""


Row = TypeVar("Row", ScoredPair, LabelledPair, TextPair, Triplet, LabelledText, covariant=False)


@brief_repr
@dataclass(frozen=True)
class Dataset(Generic[Row]):
    """Rows in file order, with the name of the layout they were read as and why it was chosen."""

    rows: tuple[Row, ...]
    source: str
    layout: str
    detected: str
    """How the layout was recognised, in words; "named by the caller" where it was not."""
    scale: Scale | None = None
    """The range that scores had in the file; rows hold them scaled to 0…1."""
    skipped: tuple[str, ...] = ()
    """One message for each line that was left out: unlabelled by the makers of the data, or bad under skip_bad."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)


@brief_repr
@dataclass(frozen=True)
class RetrievalTask:
    """Documents, queries and which document answers which query with what grade."""

    corpus: dict[str, str]
    queries: dict[str, str]
    judgements: Judgements
    source: str = ""
    layout: str = ""
    notes: tuple[str, ...] = field(default=())


def rank_documents(scores: Mapping[str, float]) -> list[str]:
    """Return document ids from best to worst, as trec_eval orders them.

    >>> rank_documents({"a": 1.0, "b": 1.0, "c": 2.0})
    ['c', 'b', 'a']
    """
    return [doc for doc, _ in sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)]
