"""What a language model may ask of libraries through MCP: tools with checked arguments, and documents as resources. Knows no protocol.

The arguments of a tool are a pydantic model whose options come from the verb's own declaration, so that they have the names, defaults and
bounds of the command line and of HTTP. Hits hold the passage that was found and the document's address; `get` and the resource give the
whole text. Libraries are known by name: a client never learns where one lies. What changes a library is offered only where it is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote as quote_url
from urllib.parse import unquote as unquote_url

from pydantic import Field

from munjang.analyze.keywords import extract_keywords
from munjang.errors import quote
from munjang.library.library import Library
from munjang.library.results import Hit
from munjang.library.store import Document
from munjang.limits import SERVE_LIMITS, ServeLimits
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import declared_options
from munjang.serve.api_analyze import KeywordsRequest
from munjang.serve.errors import Refusal
from munjang.serve.keys import Key, Right
from munjang.serve.libraries import Libraries
from munjang.serve.library_schema import RecordIn, SearchRequest, describe_added, facts, facts_of_all
from munjang.serve.schema import OwnModel, options_in
from munjang.text.unicode import clean
from munjang.wording import count

SCHEME = "munjang://"
MOST_DOCUMENTS = 100
"""Of one call of `get`, and of one that names documents to look near."""

Answer: TypeAlias = dict[str, Any]

_K, _WHERE = (declared_options(Library.search)[name] for name in ("k", "where"))
_LIBRARY = Field(default=None, description="The library's name; may be left out where there is one alone.")


class SearchArguments(SearchRequest):
    """What to look for, and in which library."""

    library: str | None = _LIBRARY


class GetArguments(OwnModel):
    """Documents by id."""

    library: str | None = _LIBRARY
    ids: list[str] = Field(min_length=1, max_length=MOST_DOCUMENTS, description="The documents' ids.")


class SimilarArguments(OwnModel):
    """Documents to look near."""

    library: str | None = _LIBRARY
    ids: list[str] = Field(min_length=1, max_length=MOST_DOCUMENTS, description="Ids of documents to be similar to.")
    k: int = Field(default=_K.default, ge=1, le=SERVE_LIMITS.max_hits, description=_K.option.help)
    where: str | None = Field(default=_WHERE.default, description=_WHERE.option.help)


class ListArguments(OwnModel):
    """Nothing."""


class AddArguments(OwnModel):
    """Documents to add, or to replace where their id is known."""

    library: str | None = _LIBRARY
    records: list[RecordIn] = Field(min_length=1, max_length=SERVE_LIMITS.max_records)


class RemoveArguments(OwnModel):
    """Documents to remove."""

    library: str | None = _LIBRARY
    ids: list[str] = Field(min_length=1, max_length=SERVE_LIMITS.max_records)


@dataclass(frozen=True)
class LibraryTool:
    """A tool: its name, what it is for, its arguments, the right that it needs, and the work itself, which blocks."""

    name: str
    description: str
    arguments: type[OwnModel]
    work: Callable[[Any, Key], Answer]
    right: Right = "read"


class Toolbox:
    """The tools and documents of some libraries; safe from many threads."""

    def __init__(
        self,
        libraries: Libraries,
        encoders: Sequence[SentenceEncoder],
        reranker: CrossEncoder | None,
        *,
        write: bool = False,
        limits: ServeLimits = SERVE_LIMITS,
    ) -> None:
        self.libraries, self.limits, self._encoders, self._reranker = libraries, limits, tuple(encoders), reranker
        reading = (
            LibraryTool(
                "search",
                "Search a library by meaning and words; by restricts it to one of them, rerank reads the best hits again by the vectors of "
                "their tokens, or with a cross-encoder. "
                "Returns the best passage of each document, with the document's id and address to cite.",
                SearchArguments,
                self._search,
            ),
            LibraryTool("get", "Return whole documents by their ids.", GetArguments, self._get),
            LibraryTool("similar", "Find the documents that are most similar to given documents.", SimilarArguments, self._similar),
            LibraryTool("keywords", "Extract the key phrases of texts.", KeywordsRequest, self._keywords),
            LibraryTool("list_libraries", "List the libraries that can be searched.", ListArguments, self._list),
        )
        writing = (
            LibraryTool("add", "Add documents to a library, or replace those whose id is known.", AddArguments, self._add, "write"),
            LibraryTool("remove", "Remove documents from a library by their ids.", RemoveArguments, self._remove, "write"),
        )
        self._tools: dict[str, LibraryTool] = {tool.name: tool for tool in (*reading, *(writing if write else ()))}

    def tools_for(self, key: Key) -> list[LibraryTool]:
        """Return the tools that a client may call."""
        return [tool for tool in self._tools.values() if tool.right == "read" or key.right != "read"]

    def find(self, name: str) -> LibraryTool:
        """Return a tool by its name, or refuse one that is not offered."""
        if name not in self._tools:
            raise Refusal(404, f"there is no tool {quote(name)}; there is: {', '.join(self._tools)}")
        return self._tools[name]

    def call(self, tool: LibraryTool, arguments: dict[str, Any], key: Key) -> Answer:
        """Check the key and the arguments, and do the work."""
        key.check(tool.right)
        return tool.work(tool.arguments.model_validate(arguments), key)

    def names_for(self, key: Key) -> list[str]:
        """Return the names of the libraries that a client may see."""
        return [name for name, _ in self.libraries if key.may_see(name)]

    def describe(self, name: str, key: Key) -> Answer:
        """Return what a library holds."""
        return facts(*self._library(name, key))

    def document(self, name: str, id: str, key: Key) -> Document:
        """Return one document, or refuse an id that the library does not have."""
        name, library = self._library(name, key)
        found = library.get([id])
        if not found:
            raise Refusal(404, f"the library {quote(name)} has no document {quote(id)}")
        return found[0]

    def _library(self, name: str | None, key: Key) -> tuple[str, Library]:
        if name is None:
            names = self.names_for(key)
            if len(names) != 1:
                raise Refusal(400, f"library is not given, expected one of: {', '.join(names) or 'none'}", field="library")
            name = names[0]
        key.check("read", name)
        return name, self.libraries.get(name)

    def _search(self, body: SearchArguments, key: Key) -> Answer:
        name, library = self._library(body.library, key)
        rerank: CrossEncoder | Literal["late"] | bool | None = body.rerank
        if rerank is True and self._reranker is not None and library.info().token_vectors is None:
            rerank = self._reranker
        notes: list[str] = []
        hits = library.search(body.query, **body.search_options(notes), rerank=rerank, notes=notes)
        notes += _note_cut(library, body.query or "")
        return _answer(name, hits, notes)

    def _similar(self, body: SimilarArguments, key: Key) -> Answer:
        name, library = self._library(body.library, key)
        notes: list[str] = []
        return _answer(name, library.search(k=body.k, where=body.where, like=body.ids, notes=notes), notes)

    def _get(self, body: GetArguments, key: Key) -> Answer:
        name, library = self._library(body.library, key)
        documents = library.get(body.ids)
        there = {document.id for document in documents}
        return {
            "library": name,
            "documents": [{**document_json(document), "uri": uri_of(name, document.id)} for document in documents],
            "missing": [id for id in body.ids if id not in there],
        }

    def _keywords(self, body: KeywordsRequest, _key: Key) -> Answer:
        if len(body.texts) > self.limits.max_analysed_texts:
            raise Refusal(413, f"texts are {len(body.texts):,}, the limit is {self.limits.max_analysed_texts:,}", field="texts")
        known = {each.name: each for each in self._encoders}
        if body.model is not None and body.model not in known:
            raise Refusal(404, f"there is no model {quote(body.model)}; there is: {', '.join(known)}", field="model")
        encoder = known[body.model] if body.model is not None else self._encoders[0]
        found = extract_keywords(body.texts, encoder.with_prompt(warn=False), **options_in(body, extract_keywords))
        return {"keywords": [[asdict(one) for one in each] for each in found], "texts": [clean(text) for text in body.texts]}

    def _list(self, _body: ListArguments, key: Key) -> Answer:
        return {"libraries": facts_of_all((name, library) for name, library in self.libraries if key.may_see(name))}

    def _add(self, body: AddArguments, key: Key) -> Answer:
        name, library = self._library(body.library, key)
        return {"library": name, **describe_added(library, library.add([record.model_dump() for record in body.records]))}

    def _remove(self, body: RemoveArguments, key: Key) -> Answer:
        name, library = self._library(body.library, key)
        return {"library": name, "removed": library.remove(body.ids), "documents": library.info().documents}


def uri_of(library: str, id: str | None = None) -> str:
    """Return the address of a document, or of a library.

    >>> uri_of("news", "a/1"), uri_of("news")
    ('munjang://news/a%2F1', 'munjang://news')
    """
    return SCHEME + "/".join(quote_url(part, safe="") for part in (library, id) if part is not None)


def parse_uri(uri: str) -> tuple[str, str | None]:
    """Return the library and the id in an address; the id of a library's own address is None.

    >>> parse_uri("munjang://news/a%2F1"), parse_uri("munjang://news")
    (('news', 'a/1'), ('news', None))
    """
    library, slash, id = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not library or "/" in id or (slash and not id):
        raise Refusal(404, f"there is no resource {quote(uri)}, expected munjang://LIBRARY/ID")
    return unquote_url(library), unquote_url(id) if id else None


def document_json(document: Document) -> Answer:
    """Return a document for clients."""
    return {"id": document.id, "text": document.text, "metadata": document.metadata}


def _answer(name: str, hits: Sequence[Hit], notes: list[str]) -> Answer:
    return {"library": name, "hits": [_hit(name, hit) for hit in hits], **({"notes": notes} if notes else {})}


def _hit(name: str, hit: Hit) -> Answer:
    found: Answer = {
        "id": hit.id,
        "uri": uri_of(name, hit.id),
        "score": hit.score,
        "passage": hit.passage,
        "start": hit.start,
        "stop": hit.stop,
        "metadata": hit.metadata,
        **({} if hit.citation is None else {"citation": hit.citation}),
        "reranked": hit.reranked,
    }
    return found if hit.explanation is None else {**found, "explanation": asdict(hit.explanation)}


def _note_cut(library: Library, query: str) -> list[str]:
    """Say how much of a query was read, where that is not all of it; a short one is not counted, since a token has a character at least."""
    limit, counter = getattr(library.query_encoder, "max_length", None), getattr(library.query_encoder, "count_tokens", None)
    if limit is None or counter is None or len(query) < limit // 2:
        return []
    [tokens] = counter([clean(query)])
    return [f"the query has {count(tokens, 'token')}, the model reads the first {limit:,}"] if tokens > limit else []
