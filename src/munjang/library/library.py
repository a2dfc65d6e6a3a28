"""A library: documents you can search by meaning and by words, in one file that survives anything.

The library brings a store, an encoder and the caches together; each of them is explained in its own file. A library may be used from
several threads. One writer at a time: another one gets `Busy`. Searching never waits for a writer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from munjang.errors import UsageError, shown
from munjang.library.adding import AddReport, Progress, add_documents, make_entries
from munjang.library.fuse import Hybrid
from munjang.library.hits import Hit
from munjang.library.incoming import Records, documents, storable
from munjang.library.info import Info, info_of
from munjang.library.liking import liked_vector
from munjang.library.matrix import unit
from munjang.library.meaning import Meaning
from munjang.library.opening import check_model, model_name, open_store, settings_for
from munjang.library.ranking import Query
from munjang.library.search import Request, find, finish
from munjang.library.store import Document, Entry, Store
from munjang.library.tuning import Tuning
from munjang.library.where import Condition
from munjang.library.where_keys import KnownKeys, UnknownKeyWarning
from munjang.library.where_parser import parse_where
from munjang.library.words import question_words, with_stems
from munjang.other_names import SEARCH, explain_other_names
from munjang.text.korean import Analyser
from munjang.text.rows import BadLines
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_ids, validate_text, validate_texts
from munjang.types import Encoder, Scorer, check_encoder, check_scorer
from munjang.wording import name_facts, quote_place

QUERY_CHARACTERS = 10_000
"""Characters of a query that are looked at for words."""


class Library:
    """Documents with their vectors; made by `Library.open`."""

    def __init__(
        self, store: Store, encoder: Encoder | None, *, query_encoder: Encoder | None = None, folder: Path | None, tuning: Tuning
    ) -> None:
        self.store = store
        self.encoder = encoder
        self.query_encoder = query_encoder or encoder
        self._tuning = tuning
        self._meaning = Meaning(store, folder, tuning)
        self._keys = KnownKeys(store)

    def __repr__(self) -> str:
        model = "no model" if self.encoder is None else f"model {shown(model_name(self.encoder), 40)}"
        return name_facts("Library", [quote_place(self.store.name), model])  # no counts: a repr must not ask a server

    @classmethod
    def open(
        cls,
        path: str | Path,
        encoder: Encoder | None = None,
        *,
        query_encoder: Encoder | None = None,
        create: bool = True,
        analyser: Analyser | None = None,
        passage_characters: int | None = None,
        tuning: Tuning | None = None,
    ) -> Library:
        """Open the library at a path, or make it there; an encoder that is not the library's own is refused with both names.

        Without an encoder the library can be read, checked and thinned out, but takes no texts. `query_encoder` is for models that read
        questions and documents with different prompts. `analyser` and `passage_characters` are for a new library; an old one keeps its own.
        """
        for name, given in (("encoder", encoder), ("query_encoder", query_encoder)):
            if given is not None:
                check_encoder(given, name)
        made_with = None
        if create and encoder is not None:
            made_with = settings_for(encoder, analyser=analyser, passage_characters=passage_characters)
        store, folder = open_store(path, made_with)
        try:
            if encoder is not None:
                check_model(store, encoder)
        except BaseException:
            store.close()
            raise
        return cls(store, encoder, query_encoder=query_encoder, folder=folder, tuning=tuning or Tuning())

    def add(self, records: Records, *, progress: Progress | None = None, bad: BadLines | None = None) -> AddReport:
        """Add records, or replace those whose id is known; what `progress` was told, and all when this returns, is on disk.

        A record is a text, a mapping with "text" (and maybe "id", "metadata" and more), or a `Record`. A data frame of pandas or polars is
        taken row by row: its columns "text" and "id", the others as metadata. Only new or changed texts are encoded. A record that cannot
        be taken is an error; with `bad` it is counted there, and the others go on.
        """
        return self._write("add", documents(records, bad=bad), progress, must_exist=False)

    def update(self, records: Records, *, progress: Progress | None = None) -> AddReport:
        """Replace documents that exist; an unknown id is refused before its batch is written."""
        return self._write("update", documents(records), progress, must_exist=True)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove documents and return how many there were; unknown ids are passed over."""
        with self.store.writer("remove"):
            return self.store.delete([id for id in validate_ids(ids) if storable(id)])

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Return the documents with these ids, in this order, without those that do not exist."""
        wanted = validate_ids(ids)
        self.store.verify()
        found = self.store.get([id for id in wanted if storable(id)])
        return [found[id] for id in wanted if id in found]

    @explain_other_names(SEARCH)
    def search(
        self,
        query: str | None = None,
        k: int = 10,
        *,
        where: str | Condition | None = None,
        hybrid: bool | Hybrid = False,
        rerank: Scorer | None = None,
        rerank_share: float | None = None,
        exact: bool | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
        min_score: float | None = None,
        explain: bool = False,
        budget_seconds: float | None = None,
        strict: bool = False,
        notes: list[str] | None = None,
    ) -> list[Hit]:
        """Return the k documents that answer best, best first.

        `where` filters by metadata (`"year >= 2020 and category = '소설'"`). `hybrid` adds words to meaning. `rerank` lets a cross-encoder
        order the best 50, for at most `budget_seconds`; with a `rerank_share` below 1 the first ranking keeps the rest of the say, and
        without one the cross-encoder has what its folder asks for. `exact` chooses between exact and approximate search; None takes
        approximate where lists exist. `like` and `unlike` are ids of documents to look near and away from, with a query or without; they
        are not among the hits. `min_score` is a bound on the score that is shown. A key of `where` that no document has is an
        UnknownKeyWarning; with `strict` an error; with `notes` a sentence that is put there.
        """
        if query is None and (not like or rerank is not None):
            raise UsageError("there is no query, expected one, or documents to look near (like), which a re-ranker cannot read")
        like, unlike = validate_ids(like, name="like"), validate_ids(unlike, name="unlike")
        request = _request(k, where, hybrid, rerank, rerank_share, exact, [*like, *unlike], min_score, explain, budget_seconds)
        self.store.verify()
        self._check_keys(request.where, strict, notes)
        if query is None:
            request = replace(request, hybrid=None)
            return self._find([Query(liked_vector(self.store, None, like, unlike), ())], [""], request)[0]
        text = _question(query)
        [asked] = self._queries([text], request)
        if like or unlike:
            asked = replace(asked, vector_D=liked_vector(self.store, asked.vector_D, like, unlike))
        return self._find([asked], [text], request)[0]

    @explain_other_names(SEARCH)
    def search_many(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        where: str | Condition | None = None,
        hybrid: bool | Hybrid = False,
        rerank: Scorer | None = None,
        rerank_share: float | None = None,
        exact: bool | None = None,
        min_score: float | None = None,
        explain: bool = False,
        budget_seconds: float | None = None,
        strict: bool = False,
        notes: list[str] | None = None,
    ) -> list[list[Hit]]:
        """Return an answer for each query, as `search` would, but encoded and searched together; `budget_seconds` is for each."""
        request = _request(k, where, hybrid, rerank, rerank_share, exact, [], min_score, explain, budget_seconds)
        texts = [_question(query) for query in validate_texts(queries, name="queries")]
        self.store.verify()
        self._check_keys(request.where, strict, notes)
        return self._find(self._queries(texts, request), texts, request) if texts else []

    def prepare(self) -> str:
        """Build what makes searching fast, now instead of at the first search; say how searches are answered from now on."""
        self.store.verify(whole=True)
        return self._meaning.prepare()

    def info(self) -> Info:
        """Return what the library is and holds."""
        return info_of(self.store)

    def check(self) -> list[str]:
        """Read everything and return what is wrong, one sentence each; empty when all is well. Caches need no check: none is trusted."""
        return self.store.check()

    def compact(self) -> None:
        """Give the space of removed documents back to the disk."""
        with self.store.writer("compact"):
            self.store.compact()

    def reencode(
        self,
        encoder: Encoder,
        *,
        query_encoder: Encoder | None = None,
        passage_characters: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Encode every document with another model, in one step: until it is done, and if it fails, the library is the old one."""
        check_encoder(encoder)
        check_encoder(query_encoder or encoder, "query_encoder")
        way = with_stems(self.store.settings().analyser)
        settings = replace(settings_for(encoder, passage_characters=passage_characters), analyser=way)

        def entries() -> Iterator[Entry]:
            for block in self.store.entries(block=self._tuning.batch_documents):
                yield from make_entries([entry.document for entry in block], encoder, settings)
                if progress is not None:
                    progress(len(block))

        self.store.verify(whole=True)  # a document that damage hides would be dropped
        with self.store.writer(f"reencode with {model_name(encoder)}"):
            self.store.put(entries(), settings=settings)
        self.encoder, self.query_encoder = encoder, query_encoder or encoder

    def discard_new(self) -> bool:
        """Close a library; remove it if opening it here made it, nothing was written since and nobody else has it open. Say whether it was.

        For whoever makes a library for records that then turn out to be unusable.
        """
        self.close()
        return self.store.discard_new()

    def close(self) -> None:
        """Let go of files; a second call does nothing."""
        self._meaning.forget()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self, purpose: str, records: Iterable[Document], progress: Progress | None, *, must_exist: bool) -> AddReport:
        encoder = self._needed(self.encoder)
        with self.store.writer(purpose):
            check_model(self.store, encoder)  # someone may have changed the library's model since it was opened
            return add_documents(self.store, encoder, records, tuning=self._tuning, progress=progress, must_exist=must_exist)

    def _check_keys(self, where: Condition | None, strict: bool, notes: list[str] | None) -> None:
        unknown = [] if where is None else self._keys.name_unknown(where)
        if unknown and strict:
            raise UsageError("\n".join(unknown))
        if notes is not None:
            notes.extend(unknown)
            return
        for note in unknown:
            warnings.warn(f"{self.store.name}: {note}", UnknownKeyWarning, stacklevel=4)

    def _needed(self, encoder: Encoder | None) -> Encoder:
        if encoder is None:
            raise UsageError(f"{self.store.name}: was opened without a model, which this needs\n  open it with an encoder")
        return encoder

    def _find(self, queries: Sequence[Query], texts: Sequence[str], request: Request) -> list[list[Hit]]:
        with self.store.snapshot():
            if self.encoder is not None:
                check_model(self.store, self.encoder)
            found = find(self.store, self._meaning, queries, request)
        return finish(found, texts, request)

    def _queries(self, texts: Sequence[str], request: Request) -> list[Query]:
        vectors_ND = unit(np.asarray(self._needed(self.query_encoder).encode(texts), dtype=np.float32))
        words: list[tuple[str, ...]] = [()] * len(texts)
        if request.hybrid is not None or request.explain:
            way = self.store.settings().analyser
            words = [question_words(text[:QUERY_CHARACTERS], way) for text in texts]
        return [Query(vector_D, each) for vector_D, each in zip(vectors_ND, words, strict=True)]


def _request(
    k: int,
    where: str | Condition | None,
    hybrid: bool | Hybrid,
    rerank: Scorer | None,
    rerank_share: float | None,
    exact: bool | None,
    without: Sequence[str],
    min_score: float | None,
    explain: bool,
    budget_seconds: float | None,
) -> Request:
    if rerank is not None:
        check_scorer(rerank, "rerank")
    if k < 1:
        raise UsageError(f"k is {k}, expected at least 1")
    if not isinstance(where, str | Condition | None):
        raise UsageError(f"where is a {type(where).__name__}, expected a filter such as \"year >= 2020 and category = '소설'\"")
    return Request(
        k=k,
        where=parse_where(where) if isinstance(where, str) else where,
        hybrid=hybrid if isinstance(hybrid, Hybrid) else Hybrid() if hybrid else None,
        exact=exact,
        without=frozenset(without),
        min_score=min_score,
        rerank=rerank,
        rerank_share=rerank_share,
        budget_seconds=budget_seconds,
        explain=explain,
    )


def _question(text: str) -> str:
    text = clean(validate_text(text, name="query"))
    if not text.strip():
        raise UsageError("the query is empty, expected something to look for")
    return text
