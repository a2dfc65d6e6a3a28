"""Munjang's own requests and answers about libraries, their documents, searches, and jobs: never where a library lies on disk."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from munjang.errors import UsageError
from munjang.library.indexing import AddReport
from munjang.library.library import Library
from munjang.library.old_names import HYBRID, choose_by
from munjang.library.results import Hit
from munjang.library.sqlite_files import LibraryGone, LibraryReplaced
from munjang.limits import SERVE_LIMITS
from munjang.serve.libraries import SAMPLE
from munjang.serve.schema import OwnModel, options_in, takes_options
from munjang.text.read_lines import check_encoding
from munjang.text.readers import read_texts

Name = str


class RecordIn(OwnModel):
    """One document to add; without an id, equal texts are one document."""

    id: str | int | None = None
    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)


@takes_options(Library.open, only=["passage_characters", "token_vectors"], most={"passage_characters": 100_000})
class CreateRequest(OwnModel):
    """A new library and its first documents."""

    name: Name
    model: str | None = None
    """Which of the served models makes its vectors."""
    records: list[RecordIn] = Field(default_factory=list)


class AddRequest(OwnModel):
    """Documents to add, or to replace where their id is known."""

    records: list[RecordIn]


class RemoveRequest(OwnModel):
    """Documents to remove."""

    ids: list[str]


@takes_options(Library.search, most={"k": SERVE_LIMITS.max_hits, "budget_seconds": 60})
class SearchRequest(OwnModel):
    """What to look for; without a query, documents to look near."""

    query: str | None = None
    rerank: bool | Literal["late"] | None = None
    """Re-rank the best 50: "late" by token vectors, which is the default where the library has them, and else makes them now; true
    likewise, or with the cross-encoder where one is served and the library has none, or `rerank_model` is given; false does not."""
    rerank_model: str | None = None
    """Which of the served cross-encoders."""
    hybrid: bool | None = Field(default=None, json_schema_extra={"deprecated": True})
    """Deprecated, removed in 0.3: words and meaning are searched by default; false is by "meaning"."""

    def search_options(self, notes: list[str]) -> dict[str, Any]:
        """Return what is asked of `Library.search`; what is deprecated is said in `notes`."""
        options = options_in(self, Library.search)
        if self.hybrid is not None:
            notes.append(HYBRID)
            options["by"] = options["by"] or choose_by(self.hybrid)
        return options


@takes_options(read_texts, without=["format"])
class UploadQuery(OwnModel):
    """What an uploaded file is."""

    filename: str
    """Its ending says the format."""
    model: str | None = None
    """Which of the served models, where the library is new."""
    delimiter: str | None = Field(default=None, min_length=1, max_length=1, pattern='[^"]')
    """What stands between fields; by default a comma in CSV, a tab in TSV."""
    header: bool | None = None
    """Whether the first line of CSV and TSV names the columns; by default guessed."""
    quoting: bool | None = None
    """Whether double quotes enclose fields; by default yes in CSV, no in TSV."""

    @field_validator("encoding", check_fields=False)
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            check_encoding(encoding)
        except UsageError as error:
            raise PydanticCustomError("encoding", "{reason}", {"reason": str(error)}) from None
        return encoding


class LibraryOut(OwnModel):
    """A library's settings and content."""

    name: str
    documents: int
    passages: int
    model: str
    dimension: int
    analyser: str
    passage_characters: int
    generation: int
    token_vectors: str | None = None
    """How token vectors are stored; null where there are none."""
    sample: bool
    """The collection that comes with Munjang, shown where there is no other."""


class LibraryList(OwnModel):
    """All libraries."""

    libraries: list[LibraryOut]
    read_only: bool
    can_create: bool


class AddOut(OwnModel):
    """What happened to the records."""

    added: int
    changed: int
    relabelled: int
    unchanged: int
    replaced: int
    """Behind them, in the same batch, came another text with their id."""
    passages: int
    seconds: float
    documents: int
    """Documents that the library holds now."""


class RemoveOut(OwnModel):
    """How many documents there were."""

    removed: int


class WordMatchOut(OwnModel):
    """A word of the query and the word of the document that it met; offsets count characters of the document's text."""

    query: str
    text: str
    cosine: float
    start: int
    stop: int


class ExplanationOut(OwnModel):
    """Where a score comes from; ranks count from 1."""

    cosine: float | None
    meaning_rank: int | None
    bm25: float | None
    words_rank: int | None
    words: list[str]
    late: float | None = None
    """MaxSim of the query's tokens and the passage's."""
    words_share: float | None = None
    """BM25 as a share of the highest that is possible."""
    matches: list[WordMatchOut] = Field(default_factory=list)


class HitOut(OwnModel):
    """A matching document, and the character offsets of its best passage."""

    id: str
    score: float
    text: str
    metadata: dict[str, Any]
    start: int
    stop: int
    reranked: bool
    citation: str | None = None
    """Where the passage stands in its file, for people; only in hits of documents that were read from files."""
    scored_by: Literal["meaning", "words", "meaning and words", "late", "cross-encoder"]
    explanation: ExplanationOut | None = None


class UnfinishedOut(OwnModel):
    """How far re-ranking got before its time was up."""

    scored: int
    candidates: int


class SearchOut(OwnModel):
    """The hits, best first."""

    hits: list[HitOut]
    milliseconds: float
    query_truncated: bool
    warnings: list[str] = Field(default_factory=list)
    """Metadata keys of the filter that no document has, and options that are deprecated, a sentence each."""
    rerank_unfinished: UnfinishedOut | None = None
    """Only where budget_seconds was up; what was not scored follows in its old order, with reranked false."""


class JobOut(OwnModel):
    """The progress of an upload."""

    id: str
    kind: str
    library: str
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    done: int
    total: int | None
    result: dict[str, Any] | None
    error: str | None


class OwnErrorDetail(OwnModel):
    """What went wrong; the message names the limit where one was met."""

    message: str
    code: str
    field: str | None


class OwnError(OwnModel):
    """An error."""

    error: OwnErrorDetail


def facts(name: str, library: Library) -> dict[str, Any]:
    """Return what clients may know of a library; not where it lies."""
    info = library.info()
    names = ("documents", "passages", "model", "dimension", "analyser", "passage_characters", "generation", "token_vectors")
    return {"name": name, **{each: getattr(info, each) for each in names}, "sample": name == SAMPLE}


def facts_of_all(libraries: Iterable[tuple[str, Library]]) -> list[dict[str, Any]]:
    """Return the facts of all libraries, without those whose files somebody took away or replaced."""
    found = []
    for name, library in libraries:
        with suppress(LibraryGone, LibraryReplaced):
            found.append(facts(name, library))
    return found


def describe_added(library: Library, report: AddReport) -> dict[str, Any]:
    """Return a report for clients."""
    return {**asdict(report), "seconds": round(report.seconds, 3), "documents": library.info().documents}


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return a hit for clients."""
    names = ("id", "score", "text", "metadata", "start", "stop", "reranked", "scored_by")
    found = {name: getattr(hit, name) for name in names}
    if hit.citation is not None:
        found["citation"] = hit.citation
    if hit.explanation is not None:
        found["explanation"] = asdict(hit.explanation)
    return found
