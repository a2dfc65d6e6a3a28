"""A library: documents you can search by meaning and by words, in one file that survives anything.

The library brings a store, an encoder and the caches together; each of them is explained in its own file. A library may be used from
several threads. One writer at a time: others wait for their turn, and get `Busy` when it does not come. A long `add` lets others in after
each batch. Searching never waits for a writer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal

from munjang.errors import UsageError, quote
from munjang.file_lock import PATIENCE, PatienceOption
from munjang.library.index_config import IndexPrecisionOption, MethodOption, Tuning
from munjang.library.indexing import (
    AddReport,
    Progress,
    add_batch,
    add_groups,
    add_missing_codes,
    reencode_entries,
    remake_words,
    split_batches,
)
from munjang.library.late import check_format, find_codebook, make_codebook
from munjang.library.old_names import take_hybrid
from munjang.library.open_store import DistributedOption, check_model, choose_views, model_name, open_store, require_encoder, settings_for
from munjang.library.questions import blend_liked, check_question, make_queries, make_request
from munjang.library.ranking import By, Query
from munjang.library.records import Records, documents, storable
from munjang.library.results import Hit, Hits, Info, info_of
from munjang.library.search import KnownKeys, Readers, Request, SearchWeights, find, finish
from munjang.library.store import Document, NewWeights, Store
from munjang.library.turns import WriterTurns, read_again
from munjang.library.vector_search import VectorSearch
from munjang.library.where import Condition
from munjang.library.words import with_dictionary, with_stems
from munjang.options import Option, check_options, declared_options
from munjang.other_names import SEARCH, explain_other_names
from munjang.text.dictionary import Dictionary
from munjang.text.korean import Analyser
from munjang.text.pos_analysers import PosAnalyser, PosName
from munjang.text.records import BadLines
from munjang.text.validate_texts import validate_ids, validate_texts
from munjang.types import Encoder, Scorer, check_encoder
from munjang.vectors.maxsim import DEFAULT_FORMAT, TokenFormat, check_token_format
from munjang.wording import name_facts, quote_place

DEFAULT_K = 10
"""Documents that a search returns."""


class Library:
    """Documents with their vectors; opened or created by `Library.open`."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder | None,
        *,
        query_encoder: Encoder | None = None,
        folder: Path | None,
        tuning: Tuning,
        patience: float = PATIENCE,
    ) -> None:
        self.store = store
        self._token_vectors: TokenFormat | None = None
        self.encoder = encoder
        self.query_encoder = query_encoder or encoder
        self._tuning = tuning
        self.turns = WriterTurns(store, patience)
        self.vector_search = VectorSearch(store, folder, tuning)
        self._keys = KnownKeys(store)

    def __repr__(self) -> str:
        model = "no model" if self.encoder is None else f"model {quote(model_name(self.encoder), 40)}"
        return name_facts("Library", [quote_place(self.store.name), model])  # no counts: a repr must not ask a server

    @classmethod
    def open(
        cls,
        path: str | Path,
        encoder: Encoder | None = None,
        *,
        query_encoder: Encoder | None = None,
        create: bool = True,
        analyser: Analyser | PosName | PosAnalyser | None = None,
        passage_characters: Annotated[
            int | None, Option("Split longer documents into passages of this many characters (new libraries only).", min=50)
        ] = None,
        tuning: Tuning | None = None,
        patience: PatienceOption = PATIENCE,
        name: str | None = None,
        token_vectors: Annotated[
            TokenFormat | None, Option("Also keep a vector for every token, in this many bits, to re-rank searches (new libraries only).")
        ] = None,
        distributed: DistributedOption = False,
    ) -> Library:
        """Open the library at a path, or create it; an encoder that is not the library's own is rejected with both names.

        Without an encoder no text can be added or searched for. The model's own prompts for queries and documents are applied;
        `query_encoder` is for queries that another encoder reads. `analyser`, `passage_characters` and `token_vectors` are for a new
        library; an old one keeps its own. `analyser` may be an object with a `pos` method, such as KoNLPy's (`use_analyser`).
        Token vectors ("1bit" is enough) re-rank searches, and are kept up to date without being asked.
        `patience` is how many seconds a call that writes waits for other writers before it raises Busy. `name` is what messages call the
        library, else its path. A library on a read-only disk can be searched.
        `distributed` spreads a new library in PostgreSQL over the nodes of a Citus cluster.
        """
        check_options(Library.open, locals())
        if query_encoder is not None:
            check_encoder(query_encoder, "query_encoder")
        made_with = None
        if create and encoder is not None:
            made_with = settings_for(choose_views(encoder, None, None)[0], analyser=analyser, passage_characters=passage_characters)
        store, folder = open_store(path, made_with, name=name, distributed=distributed)
        try:
            if encoder is not None:
                encoder, query_encoder = choose_views(encoder, query_encoder, store.settings().fingerprint)
                check_model(store, encoder)
            library = cls(store, encoder, query_encoder=query_encoder, folder=folder, tuning=tuning or Tuning(), patience=patience)
            if token_vectors is not None:
                library.keep_token_vectors(token_vectors)
        except BaseException:
            store.close()
            raise
        return library

    def add(
        self, records: Records, *, progress: Progress | None = None, bad: BadLines | None = None, patience: float | None = None
    ) -> AddReport:
        """Add records, or replace those whose id is known; everything reported to `progress`, and all when this returns, is on disk.

        A record is a text, a mapping with "text" (and maybe "id", "metadata" and more), or a `Record`. A data frame of pandas or polars is
        taken row by row: its columns "text" and "id", the others as metadata. Only new or changed texts are encoded. An invalid record
        is an error; with `bad` it is counted there instead, and the others are added. `patience` is how long each batch waits for its
        turn, else as long as the library was opened with.
        """
        return self._write("add", documents(records, bad=bad), progress, must_exist=False, patience=patience)

    def add_groups(self, groups: Sequence[Records], *, patience: float | None = None) -> list[AddReport]:
        """Add the records of several callers in one commit and return a report for each; where this fails, nothing is added."""
        encoder, found = require_encoder(self.encoder, self.store), [list(documents(records)) for records in groups]

        def write() -> list[AddReport]:
            check_model(self.store, encoder)
            return add_groups(self.store, encoder, found, tokens=self._token_vectors)

        return self.turns.repeat("add", write, wrote=lambda reports: any(each.written for each in reports), patience=patience)

    def update(self, records: Records, *, progress: Progress | None = None, patience: float | None = None) -> AddReport:
        """Replace existing documents; an unknown id is rejected before its batch is written."""
        return self._write("update", documents(records), progress, must_exist=True, patience=patience)

    def remove(self, ids: Iterable[str], *, patience: float | None = None) -> int:
        """Remove documents and return how many there were; unknown ids are ignored."""
        wanted = [id for id in validate_ids(ids) if storable(id)]
        return self.turns.repeat("remove", lambda: self.store.delete(wanted), wrote=bool, patience=patience)

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Return the documents with these ids, in this order, without those that do not exist."""
        wanted = validate_ids(ids)
        self.store.verify()
        found = read_again(lambda: self.store.get([id for id in wanted if storable(id)]))
        return [found[id] for id in wanted if id in found]

    def use_encoder(self, encoder: Encoder, query_encoder: Encoder | None = None) -> None:
        """Give a library that was opened without an encoder the one that it was made with; another one is refused."""
        encoder, query_encoder = choose_views(encoder, query_encoder, self.store.settings().fingerprint)
        check_model(self.store, encoder)
        self.encoder, self.query_encoder = encoder, query_encoder

    @take_hybrid
    @explain_other_names(SEARCH)
    def search(
        self,
        query: str | None = None,
        k: Annotated[int, Option("How many documents.", min=1, flags=("--top", "-k"))] = DEFAULT_K,
        *,
        where: Annotated[
            str | Condition | None, Option("Only documents that match a filter on metadata, id and text: year >= 2020 and kind = 'a'")
        ] = None,
        strict: Annotated[bool, Option("Refuse a filter with a metadata key that no document has.")] = False,
        by: Annotated[By, Option("Search by meaning alone, or by words alone. Default: by both.")] = None,
        rerank: Scorer | Literal["late"] | bool | None = None,
        rerank_share: Annotated[
            float | None,
            Option(
                "The re-ranker's weight, by default what a cross-encoder's folder asks for; the rest goes to the first-stage score.",
                min=0.01,
                max=1,
            ),
        ] = None,
        budget_seconds: Annotated[float | None, Option("Stop re-ranking after this many seconds.", min=0, flags=("--budget",))] = None,
        like: Annotated[Sequence[str], Option("Search near this document; may be repeated.")] = (),
        unlike: Annotated[Sequence[str], Option("Search away from this document; may be repeated.")] = (),
        min_score: Annotated[float | None, Option("Leave out hits that score less.")] = None,
        exact: Annotated[
            bool | None,
            Option("By default approximate where the library has an index for it, else exact.", flags=("--exact/--approximate",)),
        ] = None,
        explain: Annotated[bool, Option("Show what each hit's score is made of.")] = False,
        as_typed: Annotated[bool, Option("Take the query word for word: correct no typing errors and add no spaces.")] = False,
        notes: list[str] | None = None,
    ) -> Hits:
        """Return the k best documents, best first.

        Words and meaning both count; `by` restricts the search to one of them, or is a `Hybrid` with other weights. A library with token
        vectors re-ranks the best 50 by them, unless `by` is "words"; `rerank=False` leaves that out, and True or "late" insists on it: then
        tokens that the library does not keep are made now. `rerank` may be a cross-encoder instead, for at most `budget_seconds`.
        `rerank_share` is the re-ranker's weight, and the rest goes to the first-stage score. `where` filters by metadata
        (`"year >= 2020 and category = '소설'"`); a key that no document has is an UnknownKeyWarning, with `strict` an error, with `notes` a
        sentence appended there. `like` and `unlike` are ids of documents to be similar to and to avoid, with or without a query; they are
        not among the hits. `min_score` is a bound on the score that is shown.
        """
        if query is None and (not like or rerank not in (None, False)):
            raise UsageError("there is no query, expected one, or documents to look near (like), which a re-ranker cannot read")
        like, unlike = validate_ids(like, name="like"), validate_ids(unlike, name="unlike")
        if by == "words" and (like or unlike):
            raise UsageError('like and unlike change what the query means, which by="words" does not look at\n  leave by out')
        request = self._request(locals(), rerank)
        self.store.verify()
        self._keys.check(request.where, strict=strict, notes=notes)
        if query is None:
            request = replace(request, hybrid=None, late=False)
            vector_D = read_again(lambda: blend_liked(self.store, None, like, unlike))
            return self._find([Query(vector_D, ())], request)[0]
        [asked] = self._queries([check_question(query)], request, notes)
        if like or unlike:
            near_D = asked.vector_D
            asked = replace(asked, vector_D=read_again(lambda: blend_liked(self.store, near_D, like, unlike)))
        return self._find([asked], request)[0]

    @take_hybrid
    @explain_other_names(SEARCH)
    def search_many(
        self,
        queries: Sequence[str],
        k: int = DEFAULT_K,
        *,
        where: str | Condition | None = None,
        strict: bool = False,
        by: By = None,
        rerank: Scorer | Literal["late"] | bool | None = None,
        rerank_share: float | None = None,
        budget_seconds: float | None = None,
        min_score: float | None = None,
        exact: bool | None = None,
        explain: bool = False,
        as_typed: bool = False,
        notes: list[str] | None = None,
    ) -> list[Hits]:
        """Return an answer for each query, as `search` with these options would, but encoded and searched together.

        `budget_seconds` is for each query. `like` and `unlike` belong to one query, so they are not taken.
        """
        request = self._request(locals() | {"like": (), "unlike": ()}, rerank)
        texts = [check_question(query) for query in validate_texts(queries, name="queries")]
        self.store.verify()
        self._keys.check(request.where, strict=strict, notes=notes)
        return self._find(self._queries(texts, request, notes), request) if texts else []

    def prepare(
        self,
        *,
        method: MethodOption = None,
        precision: IndexPrecisionOption = None,
        progress: Progress | None = None,
        patience: float | None = None,
    ) -> str:
        """Build the search index now instead of at the first search; return how searches will be answered.

        `progress` is told how many passages were put into the index of a library in PostgreSQL.
        """
        check_options(Library.prepare, locals())
        self.store.verify(whole=True)
        return self.vector_search.prepare(method, precision, patience=self.turns.choose(patience), progress=progress)

    def info(self) -> Info:
        """Return the library's settings and content."""
        return read_again(lambda: info_of(self.store))

    def check(self) -> list[str]:
        """Read everything and return a list of problems, one sentence each. Caches need no check: none is trusted."""
        return self.store.check()

    def compact(self, *, patience: float | None = None) -> None:
        """Reclaim the disk space of removed documents."""
        self.turns.repeat("compact", self.store.compact, wrote=lambda _: True, patience=patience)

    def reencode(
        self,
        encoder: Encoder,
        *,
        query_encoder: Encoder | None = None,
        passage_characters: int | None = None,
        progress: Progress | None = None,
        patience: float | None = None,
    ) -> None:
        """Re-encode every document with another model, atomically: until it is done, and if it fails, the old vectors remain."""
        encoder, query_encoder = choose_views(encoder, query_encoder, None)
        way = with_stems(self.store.settings().analyser)
        settings = replace(settings_for(encoder, passage_characters=passage_characters), analyser=way)
        old = read_again(lambda: find_codebook(self.store))
        book = None if old is None else make_codebook(encoder, old.codebook.format)
        entries = reencode_entries(self.store, encoder, settings, self._tuning, book=book, progress=progress)
        self.store.verify(whole=True)  # a document that damage hides would be dropped
        with self.turns.take(f"reencode with {model_name(encoder)}", patience):
            self.store.put(entries, settings=settings, codebook=book)
        self.encoder, self.query_encoder = encoder, query_encoder

    def use_dictionary(self, dictionary: Dictionary, *, progress: Progress | None = None, patience: float | None = None) -> bool:
        """Make the library's words anew with a dictionary, atomically, and keep it; vectors stay. Say whether anything changed.

        An empty dictionary takes the old one away.
        """
        settings = self.store.settings()
        settings = replace(settings, analyser=with_dictionary(settings.analyser, dictionary))
        if settings == self.store.settings():
            return False
        self.store.verify(whole=True)
        with self.turns.take("dictionary", patience):
            book, blocks = self.store.codebook(), self.store.entries(block=self._tuning.batch_documents, tokens=True)
            self.store.put(remake_words(blocks, settings, progress=progress), settings=settings, codebook=book)
        return True

    def keep_token_vectors(self, format: TokenFormat = DEFAULT_FORMAT) -> None:
        """Keep token vectors from the first `add` on; a library that keeps others, or has documents without any, is refused."""
        check_token_format(format)
        check_format(self.store, format)
        self._token_vectors = format

    def add_token_vectors(
        self, format: TokenFormat = DEFAULT_FORMAT, *, progress: Progress | None = None, patience: float | None = None
    ) -> int:
        """Keep a vector for every token from now on, make those of the documents that are there, and return of how many passages.

        Commits batch by batch and lets other writers in between; whoever is interrupted goes on with the next call. Searches use token
        vectors when every passage has them.
        """
        check_token_format(format)
        encoder, total, done = require_encoder(self.encoder, self.store), 0, False

        def write() -> tuple[int, bool]:
            check_model(self.store, encoder)
            return add_missing_codes(self.store, encoder, format, limit=self._tuning.batch_documents)

        while not done:
            written, done = self.turns.repeat("token vectors", write, wrote=lambda result: result[0] > 0, patience=patience)
            total += written
            if progress is not None:
                progress(written)
        return total

    def write_weights(self, weights: SearchWeights | None, *, patience: float | None = None) -> None:
        """Store the weights of this library's searches; None goes back to the built-in ones."""
        change = NewWeights(None if weights is None else weights.to_text())
        self.turns.repeat("tune", lambda: self.store.put([change]), wrote=lambda _: True, patience=patience)

    def discard_new(self) -> bool:
        """Close a library; remove it if opening it here made it, nothing was written since and nobody else has it open. Say whether it was.

        For callers that create a library for records which then turn out to be unusable.
        """
        self.close()
        return self.store.discard_new()

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        self.vector_search.forget()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(
        self, purpose: str, records: Iterable[Document], progress: Progress | None, *, must_exist: bool, patience: float | None
    ) -> AddReport:
        """Write batch by batch, and let other writers in between: neither a long file nor a slow reader of it keeps them out."""
        encoder = require_encoder(self.encoder, self.store)
        report, start = AddReport(), time.perf_counter()
        for batch in split_batches(records, self._tuning):

            def write(batch: list[Document] = batch) -> AddReport:
                check_model(self.store, encoder)  # someone may have changed the library's model meanwhile
                return add_batch(self.store, encoder, batch, must_exist=must_exist, progress=progress, tokens=self._token_vectors)

            report += self.turns.repeat(purpose, write, wrote=lambda done: done.written > 0, patience=patience)
            if progress is not None:
                progress(len(batch))
        return replace(report, seconds=time.perf_counter() - start)

    def _find(self, queries: Sequence[Query], request: Request) -> list[Hits]:
        def find_in_one_commit() -> list[list[Hit]]:
            with self.store.snapshot():
                if self.encoder is not None:
                    check_model(self.store, self.encoder)
                return find(self.store, self.vector_search, queries, request, readers=Readers(self.query_encoder, self.encoder))

        return [Hits(hits) for hits in finish(read_again(find_in_one_commit), [query.text for query in queries], request)]

    def prepare_queries(self, texts: Sequence[str]) -> list[Query]:
        """Return what a search compares of questions: their vectors, words and, where the library has them, tokens."""
        return self._queries(texts, self._request({**_DEFAULTS, "query": ""}, None))

    def _queries(self, texts: Sequence[str], request: Request, notes: list[str] | None = None) -> list[Query]:
        encoder = require_encoder(self.query_encoder, self.store) if request.late or request.needs_vectors else None
        return make_queries(texts, request, encoder, self.store, notes=notes)

    def _request(self, values: Mapping[str, Any], rerank: Scorer | Literal["late"] | bool | None) -> Request:
        check_options(Library.search, values)
        return make_request(values, rerank, self.store, self.query_encoder)


_DEFAULTS: dict[str, Any] = {name: declared.default for name, declared in declared_options(Library.search).items()}
