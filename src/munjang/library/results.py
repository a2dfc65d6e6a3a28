"""What a search returns (`Hit`), where a hit stands in its file (`cite`), and what a library is and holds in one commit (`Info`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from munjang.library.store import Metadata, Store
from munjang.library.words import read_analysis, without_dictionary
from munjang.tables import Row, Table
from munjang.wording import brief_repr


def cite(metadata: Mapping[str, Any], start: int = 0) -> str | None:
    """Return where a passage stands, for people: file, page or slide or sheet, and headings; None for what came from no file.

    `start` is where the passage begins in its section, in characters.

    >>> cite({"file": "report.pdf", "page": 3, "pages": [[900, 4]], "heading": "Winter › Roads", "section": 2}, 950)
    'report.pdf, page 4, Winter › Roads'
    """
    if not isinstance(metadata.get("file"), str) or not isinstance(metadata.get("section"), int):
        return None
    parts = [metadata["file"]]
    for kind in ("page", "slide", "sheet"):
        if isinstance(place := metadata.get(kind), str | int):
            parts.append(f"{kind} {_page_at(metadata, start) if kind == 'page' else place}")
    if isinstance(metadata.get("heading"), str):
        parts.append(metadata["heading"])
    return ", ".join(parts)


def _page_at(metadata: Mapping[str, Any], start: int) -> Any:
    page = metadata["page"]
    further = metadata.get("pages")
    for each in further if isinstance(further, list) else ():
        if isinstance(each, list) and len(each) == 2 and isinstance(each[0], int) and each[0] <= start:
            page = each[1]
    return page


ScoredBy: TypeAlias = Literal["meaning", "words", "meaning and words", "late", "cross-encoder"]
"""Where a score comes from. "late" is MaxSim over token vectors; with a weight below 1, the last stage named has that weight."""


@brief_repr
@dataclass(frozen=True)
class WordMatch:
    """A word of the question and the word of the document that it met, by their most similar tokens."""

    query: str
    text: str
    cosine: float
    start: int
    stop: int
    """The word's place in the document's text, in characters."""


@brief_repr
@dataclass(frozen=True)
class Explanation:
    """Where a hit's score comes from. Ranks count from 1; None means that this part did not find it or was not asked."""

    cosine: float | None
    meaning_rank: int | None
    bm25: float | None
    words_rank: int | None
    words: tuple[str, ...]
    """Words of the passage that the query asks for, as they stand there, in lower case."""
    late: float | None = None
    """MaxSim of the question's tokens and the passage's; None where the library was not asked for it."""
    words_share: float | None = None
    """BM25 as a share of the highest that is possible, which is what the score is made of."""
    matches: tuple[WordMatch, ...] = ()
    """Which word of the question met which word of the passage, in the order of the question."""


@brief_repr
@dataclass(frozen=True)
class Hit:
    """A document that answers, and the passage of it that answers best."""

    id: str
    score: float
    """From 0, nothing in common, to 1, the most that is possible: the weighted mean of cosine, words and tokens, as far as they were
    asked; `explanation` has the parts. A cosine alone may be negative. A cross-encoder's score is its own. `scored_by` says which."""
    text: str
    metadata: Metadata
    start: int
    stop: int
    """The passage's place in the text, in characters."""
    reranked: bool = False
    scored_by: ScoredBy = "meaning"
    explanation: Explanation | None = None

    @property
    def passage(self) -> str:
        """The stretch of the text that was found."""
        return self.text[self.start : self.stop]

    @property
    def citation(self) -> str | None:
        """Where the passage stands, for people: "report.pdf, page 4, Winter › Roads"; None for a text that came from no file."""
        return cite(self.metadata, self.start)


class Hits(Table, list[Hit]):
    """The answer to one question, best first; a list of `Hit`."""

    columns: ClassVar[tuple[str, ...]] = ("id", "score", "passage", "citation", "text")
    hidden: ClassVar[tuple[str, ...]] = ("text",)

    def to_rows(self) -> list[Row]:
        """Return the hits; metadata follow under their own names, after `metadata_` where a column has that name already."""
        own = [{name: getattr(hit, name) for name in self.columns} for hit in self]
        keys = dict.fromkeys(key for hit in self for key in hit.metadata)
        names = {key: f"metadata_{key}" if key in self.columns else key for key in keys}
        return [row | {name: hit.metadata.get(key) for key, name in names.items()} for row, hit in zip(own, self, strict=True)]


@brief_repr
@dataclass(frozen=True)
class Info:
    """What a library is and holds."""

    name: str
    documents: int
    passages: int
    model: str
    fingerprint: str
    dimension: int
    analyser: str
    passage_characters: int
    passage_overlap: int
    generation: int
    compute: str | None
    """How the model computed; None where nobody wrote it down."""
    pooling: str | None
    token_vectors: str | None
    """How token vectors are stored; None where there are none, or not yet for every passage."""
    dictionary: int = 0
    """Entries of the user's dictionary that words are made with."""


def info_of(store: Store) -> Info:
    """Return what the store holds in its last commit."""
    with store.snapshot():
        documents, passages = store.count()
        settings, stored = store.settings(), store.codebook()
        has_tokens = stored is not None and stored.complete and stored.fingerprint == settings.fingerprint
        return Info(
            name=store.name,
            documents=documents,
            passages=passages,
            model=settings.model,
            fingerprint=settings.fingerprint,
            dimension=settings.dimension,
            analyser=without_dictionary(settings.analyser),
            passage_characters=settings.passage_characters,
            passage_overlap=settings.passage_overlap,
            generation=store.generation(),
            compute=settings.compute,
            pooling=settings.pooling,
            dictionary=len(read_analysis(settings.analyser).dictionary),
            token_vectors=stored.codebook.format if stored is not None and has_tokens else None,
        )
