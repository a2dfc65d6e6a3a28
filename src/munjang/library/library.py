"""A library: documents you can search by meaning and by words, in one file that survives anything.

The library brings a store, an encoder and the caches together; each of them is explained in its own file. A library may be used from
several threads. One writer at a time: another one gets `Busy`. Searching never waits for a writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import overload

import numpy as np

from munjang.errors import InputError, UsageError, shown
from munjang.library.adding import AddReport, Progress, add_documents, make_entries
from munjang.library.fuse import Hybrid
from munjang.library.hits import Hit
from munjang.library.incoming import Incoming, documents
from munjang.library.matrix import unit
from munjang.library.meaning import Meaning
from munjang.library.opening import check_model, model_name, open_store, settings_for
from munjang.library.ranking import Query
from munjang.library.rocchio import Rocchio, blend
from munjang.library.search import Request, find
from munjang.library.store import Document, Entry, Store
from munjang.library.tuning import Tuning
from munjang.library.where import Condition
from munjang.library.where_parser import parse_where
from munjang.text.korean import Analyser, morphemes
from munjang.text.unicode import clean
from munjang.types import Encoder, Scorer, Vectors

QUERY_CHARACTERS = 10_000
"""Characters of a query that are looked at for words."""


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


class Library:
    """Documents with their vectors; made by `Library.open`."""

    def __init__(self, store: Store, encoder: Encoder | None, *, folder: Path | None, tuning: Tuning) -> None:
        self.store = store
        self.encoder = encoder
        self._tuning = tuning
        self._meaning = Meaning(store, folder, tuning)

    @classmethod
    def open(
        cls,
        path: str | Path,
        encoder: Encoder | None = None,
        *,
        create: bool = True,
        analyser: Analyser | None = None,
        passage_characters: int | None = None,
        tuning: Tuning | None = None,
    ) -> Library:
        """Open the library at a path, or make it there; an encoder that is not the library's own is refused with both names.

        Without an encoder the library can be read, checked and thinned out, but takes no texts. `analyser` and `passage_characters` are for
        a new library; an old one keeps its own.
        """
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
        return cls(store, encoder, folder=folder, tuning=tuning or Tuning())

    def add(self, records: Iterable[Incoming], *, progress: Progress | None = None) -> AddReport:
        """Add records, or replace those whose id is known; what `progress` was told, and all when this returns, is on disk.

        A record is a text, a mapping with "text" (and maybe "id", "metadata" and more), or a `Record`. Only new or changed texts are encoded.
        """
        with self.store.writer("add"):
            return add_documents(self.store, self._needed(), documents(records), tuning=self._tuning, progress=progress)

    def update(self, records: Iterable[Incoming], *, progress: Progress | None = None) -> AddReport:
        """Replace documents that exist; an unknown id is refused before its batch is written."""
        with self.store.writer("update"):
            return add_documents(self.store, self._needed(), documents(records), tuning=self._tuning, progress=progress, must_exist=True)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove documents and return how many there were; unknown ids are passed over."""
        with self.store.writer("remove"):
            return self.store.delete([id for id in ids if _storable(id)])

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Return the documents with these ids, in this order, without those that do not exist."""
        wanted = list(ids)
        found = self.store.get([id for id in wanted if _storable(id)])
        return [found[id] for id in wanted if id in found]

    @overload
    def search(
        self,
        query: str | None = None,
        k: int = 10,
        *,
        where: str | Condition | None = None,
        hybrid: bool | Hybrid = False,
        rerank: Scorer | None = None,
        exact: bool | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
        min_score: float | None = None,
        explain: bool = False,
        budget_seconds: float | None = None,
    ) -> list[Hit]: ...

    @overload
    def search(
        self,
        query: list[str] | tuple[str, ...],
        k: int = 10,
        *,
        where: str | Condition | None = None,
        hybrid: bool | Hybrid = False,
        rerank: Scorer | None = None,
        exact: bool | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
        min_score: float | None = None,
        explain: bool = False,
        budget_seconds: float | None = None,
    ) -> list[list[Hit]]: ...

    def search(
        self,
        query: str | list[str] | tuple[str, ...] | None = None,
        k: int = 10,
        *,
        where: str | Condition | None = None,
        hybrid: bool | Hybrid = False,
        rerank: Scorer | None = None,
        exact: bool | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
        min_score: float | None = None,
        explain: bool = False,
        budget_seconds: float | None = None,
    ) -> list[Hit] | list[list[Hit]]:
        """Return the k documents that answer best, best first; a list of queries gives a list of answers.

        `where` filters by metadata (`"year >= 2020 and category = '소설'"`). `hybrid` adds words to meaning. `rerank` lets a cross-encoder
        order the best 50, for at most `budget_seconds`. `exact` chooses between exact and approximate search; None takes approximate where a
        graph exists. `like` and `unlike` are ids of documents to look near and away from, with a query or without. `min_score` is a bound
        on the score that is shown.
        """
        if k < 1:
            raise UsageError(f"k is {k}, expected at least 1")
        if query is None and (not like or rerank is not None):
            raise UsageError("there is no query, expected one, or documents to look near (like), which a re-ranker cannot read")
        request = Request(
            k=k,
            where=parse_where(where) if isinstance(where, str) else where,
            hybrid=_hybrid(hybrid) if query is not None else None,
            exact=exact,
            without=frozenset([*like, *unlike]),
            min_score=min_score,
            rerank=rerank,
            budget_seconds=budget_seconds,
            explain=explain,
        )
        if query is None:
            return find(self.store, self._meaning, [Query(self._liked(None, like, unlike), ())], [""], request)[0]
        texts = [_question(text) for text in ([query] if isinstance(query, str) else query)]
        if not texts:
            return []
        answers = find(self.store, self._meaning, self._queries(texts, like, unlike, request), texts, request)
        return answers[0] if isinstance(query, str) else answers

    def prepare(self) -> str:
        """Build what makes searching fast, now instead of at the first search; say how searches are answered from now on."""
        return self._meaning.prepare()

    def info(self) -> Info:
        """Return what the library is and holds."""
        with self.store.snapshot():
            count, passages = self.store.count()
            s = self.store.settings()
            return Info(
                self.store.name,
                count,
                passages,
                s.model,
                s.fingerprint,
                s.dimension,
                s.analyser,
                s.passage_characters,
                s.passage_overlap,
                self.store.generation(),
            )

    def check(self) -> list[str]:
        """Read everything and return what is wrong, one sentence each; empty when all is well. Caches need no check: none is trusted."""
        return self.store.check()

    def compact(self) -> None:
        """Give the space of removed documents back to the disk."""
        with self.store.writer("compact"):
            self.store.compact()

    def reencode(self, encoder: Encoder, *, progress: Progress | None = None) -> None:
        """Encode every document with another model, in one step: until it is done, and if it fails, the library is the old one."""
        settings = settings_for(encoder, analyser=None, passage_characters=None)

        def entries() -> Iterator[Entry]:
            for block in self.store.entries(block=self._tuning.batch_documents):
                yield from make_entries([entry.document for entry in block], encoder, settings)
                if progress is not None:
                    progress(len(block))

        with self.store.writer(f"reencode with {model_name(encoder)}"):
            self.store.put(entries(), settings=settings)
        self.encoder = encoder

    def close(self) -> None:
        """Let go of files; a second call does nothing."""
        self._meaning.forget()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _needed(self) -> Encoder:
        if self.encoder is None:
            raise UsageError(f"{self.store.name}: was opened without a model, which this needs\n  open it with an encoder")
        return self.encoder

    def _queries(self, texts: Sequence[str], like: Sequence[str], unlike: Sequence[str], request: Request) -> list[Query]:
        vectors_ND = unit(np.asarray(self._needed().encode(texts), dtype=np.float32))
        if like or unlike:
            vectors_ND = np.stack([self._liked(vector_D, like, unlike) for vector_D in vectors_ND])
        words: list[tuple[str, ...]] = [()] * len(texts)
        if request.hybrid is not None or request.explain:
            analyser: Analyser = "kiwi" if self.store.settings().analyser == "kiwi" else "bigrams"
            words = [tuple(morphemes(text[:QUERY_CHARACTERS], analyser=analyser)) for text in texts]
        return [Query(vector_D, each) for vector_D, each in zip(vectors_ND, words, strict=True)]

    def _liked(self, query_D: Vectors | None, like: Sequence[str], unlike: Sequence[str]) -> Vectors:
        return blend(query_D, self._vectors_of(like), self._vectors_of(unlike), weights=Rocchio())

    def _vectors_of(self, ids: Sequence[str]) -> Vectors:
        """Return one unit vector for each document: the direction of the sum of its passages."""
        with self.store.snapshot():
            block = self.store.vectors_of(self.store.rows_of([id for id in ids if _storable(id)]))
        sums = {id: np.zeros(block.vectors_ND.shape[1], dtype=np.float32) for id in block.ids}
        missing = [id for id in ids if id not in sums]
        if missing:
            raise InputError(f"{self.store.name}: there is no document {shown(missing[0])}\n  check the id")
        for id, vector_D in zip(block.ids, unit(block.vectors_ND), strict=True):
            sums[id] += vector_D
        return unit(np.stack([sums[id] for id in ids])) if ids else block.vectors_ND


def _hybrid(hybrid: bool | Hybrid) -> Hybrid | None:
    return hybrid if isinstance(hybrid, Hybrid) else Hybrid() if hybrid else None


def _question(text: str) -> str:
    text = clean(text)
    if not text.strip():
        raise UsageError("the query is empty, expected something to look for")
    return text


def _storable(id: str) -> bool:
    """Say whether a document could have this id at all."""
    return "\x00" not in id and not any("\ud800" <= ch <= "\udfff" for ch in id)
