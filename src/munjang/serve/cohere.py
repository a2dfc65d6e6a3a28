"""Cohere's vectors and re-ranking, /v1 and /v2, and the re-ranking of infinity at /rerank, which is Cohere's with texts as they are.

Vectors have length one. Those of int8 and uint8 have fixed ranges (`unit_ranges`), so that vectors of two requests can be compared.
"""

from __future__ import annotations

import secrets
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from munjang.models.prompted_encoder import ROLE_PROMPTS
from munjang.models.ranking import Ranker
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts, shape_vectors, vectors_of
from munjang.serve.openai import Usage
from munjang.serve.prepare import Cutting
from munjang.serve.schema import DialectModel
from munjang.serve.scoring import score_pairs_in_turns
from munjang.text.unicode import clean
from munjang.types import Precision, Vectors
from munjang.vectors.quantize import quantize
from munjang.wording import count, plural

InputType: TypeAlias = Literal["search_document", "search_query", "classification", "clustering", "image"]
EmbeddingType: TypeAlias = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]


class EmbedPart(DialectModel):
    """One part of an input."""

    type: str
    text: str | None = None


class EmbedInput(DialectModel):
    """One input in parts, which must all be texts."""

    content: list[EmbedPart]


class CohereEmbedRequest(DialectModel):
    """Texts to turn into vectors; images are refused."""

    texts: list[str] | None = None
    images: list[str] | None = None
    model: str | None = None
    input_type: InputType | None = None
    """Chooses the model's prompt, where it has one for such inputs."""
    embedding_types: list[EmbeddingType] | None = Field(default=None, min_length=1)
    truncate: Literal["NONE", "START", "END"] = "END"
    """NONE: refuse a text that is too long. Otherwise it loses this end, and the answer says so."""
    inputs: list[EmbedInput] | None = None
    """Instead of texts: inputs in parts."""
    max_tokens: int | None = Field(default=None, ge=1)
    output_dimension: int | None = Field(default=None, ge=1)


class CohereRerankRequest(DialectModel):
    """A query and the documents to order; a document is a text or an object of texts."""

    query: str
    documents: list[str | dict[str, Any]]
    model: str | None = None
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool | None = False
    max_tokens_per_doc: int | None = Field(default=None, ge=1)
    rank_fields: list[str] | None = None


class InfinityRerankRequest(CohereRerankRequest):
    """A query and the documents to order."""

    raw_scores: bool = False


class DocumentText(DialectModel):
    """A document that comes back."""

    text: str


class RerankResult(DialectModel):
    """One document's place."""

    index: int
    relevance_score: float
    document: DocumentText | None = None


class ApiVersion(DialectModel):
    """Which version answered."""

    version: str


class BilledUnits(DialectModel):
    """What Cohere would bill; nothing here."""

    search_units: int | None = None
    input_tokens: int | None = None


class CohereMeta(DialectModel):
    """What Cohere's clients expect beside the results."""

    api_version: ApiVersion
    billed_units: BilledUnits
    warnings: list[str] | None = None


class RerankResponse(DialectModel):
    """The documents, best first."""

    id: str
    results: list[RerankResult]
    meta: CohereMeta


class EmbedFloatsResponse(DialectModel):
    """One vector per text, in the order of the texts."""

    response_type: Literal["embeddings_floats"]
    id: str
    embeddings: list[list[float]]
    texts: list[str]
    meta: CohereMeta


FloatRows: TypeAlias = list[list[float]]
"""Named outside of the class below: in there, `float` is a field."""


class CohereEmbeddings(DialectModel):
    """The vectors in each type that was asked for; binary ones hold 8 dimensions a number."""

    float: FloatRows | None = None
    int8: list[list[int]] | None = None
    uint8: list[list[int]] | None = None
    binary: list[list[int]] | None = None
    ubinary: list[list[int]] | None = None
    base64: list[str] | None = None


class EmbedByTypeResponse(DialectModel):
    """The vectors of the texts, by type."""

    response_type: Literal["embeddings_by_type"]
    id: str
    embeddings: CohereEmbeddings
    texts: list[str]
    meta: CohereMeta


class InfinityRank(DialectModel):
    """One document's place; the document is its text."""

    index: int
    relevance_score: float
    document: str | None = None


class InfinityRerankResponse(DialectModel):
    """The documents, best first, as infinity says it."""

    object: Literal["rerank"]
    id: str
    created: int
    model: str
    results: list[InfinityRank]
    usage: Usage


class CohereError(DialectModel):
    """An error as Cohere's clients read it."""

    message: str


UNIT_DOCUMENTS = 100
"""Documents that Cohere counts as one search."""

PROMPTS: dict[InputType, Sequence[str]] = {
    "search_query": ROLE_PROMPTS["query"],
    "search_document": ROLE_PROMPTS["document"],
    "classification": ("classification",),
    "clustering": ("clustering",),
}
"""Names that models give to the prompt of each kind of input; the first that the model has is used."""

PRECISIONS: dict[EmbeddingType, Precision] = {"int8": "int8", "uint8": "uint8", "binary": "binary", "ubinary": "ubinary"}


def embedder(version: str) -> Callable[[Call, CohereEmbedRequest], Awaitable[Reply]]:
    """Return the handler of one version; where no types are asked for, the first answers with plain numbers."""

    async def embed(call: Call, body: CohereEmbedRequest) -> Reply:
        texts = _texts(body)
        cutting = Cutting("left" if body.truncate == "START" else "right", body.truncate != "NONE", body.max_tokens)
        vectors = await vectors_of(call, texts, cutting, field="texts", prompt_name=_prompt_name(call, body.input_type))
        unit_ND = shape_vectors(call, vectors, dimensions=body.output_dimension, normalize=True)
        answer: dict[str, Any] = {
            "id": secrets.token_hex(16),
            "texts": texts,
            "meta": _meta(call, version, "text", input_tokens=call.seen.tokens),
        }
        if body.embedding_types is None and version == "1":
            answer |= {"response_type": "embeddings_floats", "embeddings": unit_ND}
        else:
            types: dict[EmbeddingType, None] = dict.fromkeys(body.embedding_types or ["float"])
            answer |= {"response_type": "embeddings_by_type", "embeddings": {each: _as_type(unit_ND, each) for each in types}}
        return Reply(answer, headers=call.truncation_headers())

    return embed


def reranker(version: str) -> Callable[[Call, CohereRerankRequest], Awaitable[Reply]]:
    """Return the handler of one version; they differ in the name they give themselves."""

    async def rerank(call: Call, body: CohereRerankRequest) -> Reply:
        texts, ranks = await _rank(call, body)
        results = [
            {"index": index, "relevance_score": score, **({"document": {"text": texts[index]}} if body.return_documents else {})}
            for index, score in ranks
        ]
        meta = _meta(call, version, "document", search_units=-(-len(texts) // UNIT_DOCUMENTS))
        return Reply({"id": secrets.token_hex(16), "results": results, "meta": meta}, headers=call.truncation_headers())

    return rerank


async def infinity_rerank(call: Call, body: InfinityRerankRequest) -> Reply:
    """Answer as infinity does: a document comes back as its text alone."""
    texts, ranks = await _rank(call, body, raw=body.raw_scores)
    results = [
        {"index": index, "relevance_score": score, **({"document": texts[index]} if body.return_documents else {})}
        for index, score in ranks
    ]
    tokens = call.request_work.tokens
    answer = {
        "object": "rerank",
        "id": secrets.token_hex(16),
        "created": int(time.time()),
        "model": call.reranker.name,
        "results": results,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return Reply(answer, headers=call.truncation_headers())


async def _rank(call: Call, body: CohereRerankRequest, *, raw: bool = False) -> tuple[list[str], list[tuple[int, float]]]:
    """Return the documents' texts, and the places of the best of them with their scores, best first."""
    check_texts(call, body.documents, field="documents")
    texts = [_text(document, body.rank_fields, number) for number, document in enumerate(body.documents)]
    shortened = await call.service.in_text_thread(_shorten, call.reranker, texts, body.max_tokens_per_doc)
    scores = await score_pairs_in_turns(call, [(body.query, text) for text in shortened], score="logits" if raw else "sigmoid")
    order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n]
    return texts, [(index, scores[index]) for index in order]


def _meta(call: Call, version: str, what: str, **units: int) -> dict[str, Any]:
    meta: dict[str, Any] = {"api_version": {"version": version}, "billed_units": units}
    if cut := len(call.seen.truncated):
        part = "its" if cut == 1 else "their"
        meta["warnings"] = [f"{count(cut, what)} {plural(cut, 'is')} longer than the model reads; only a part of {part} tokens counted"]
    return meta


def _texts(body: CohereEmbedRequest) -> list[str]:
    """Return the texts of a request; the second version may send them in parts."""
    if body.images or body.input_type == "image":
        raise Refusal(422, "images: the served models read texts alone", field="images")
    if (body.texts is None) == (body.inputs is None):
        raise Refusal(422, "expected texts", field="texts")
    if body.inputs is None:
        return body.texts or []
    if any(part.type != "text" for each in body.inputs for part in each.content):
        raise Refusal(422, "inputs: the served models read texts alone", field="inputs")
    return ["\n".join(part.text or "" for part in each.content) for each in body.inputs]


def _prompt_name(call: Call, kind: InputType | None) -> str | None:
    names = PROMPTS.get(kind, ()) if kind is not None else ()
    return next((name for name in names if name in call.encoder.prompts), None)


def _as_type(unit_ND: Vectors, kind: EmbeddingType) -> Any:
    if kind == "float":
        return unit_ND
    if kind == "base64":
        return [b64encode(row.tobytes()).decode("ascii") for row in np.ascontiguousarray(unit_ND, "<f4")]
    return quantize(unit_ND, PRECISIONS[kind]).tolist()


def _text(document: str | dict[str, Any], fields: Sequence[str] | None, number: int) -> str:
    if isinstance(document, str):
        return document
    names = fields or (["text"] if "text" in document else list(document))
    values = [document[name] for name in names if isinstance(document.get(name), str)]
    if not values:
        raise Refusal(422, f"document {number} has no text in the fields that count", field="documents")
    return "\n".join(values)


def _shorten(model: Ranker, texts: list[str], limit: int | None) -> list[str]:
    """Cut documents to so many tokens where the client asks for it."""
    if limit is None:
        return texts
    found = []
    for text in map(clean, texts):
        seen = model.tokenizer.encode_with_offsets(text)
        stops = [stop for (_, stop), special in zip(seen.offsets, seen.special_mask, strict=True) if not special]
        found.append(text if len(stops) <= limit else text[: stops[limit - 1]])
    return found


_RERANK = "Rank documents for a query."

INFINITY_RERANK = Operation(
    "POST", "/rerank", "infinity", _RERANK, infinity_rerank, InfinityRerankRequest, InfinityRerankResponse, computes=True
)
"""Shares its path with text-embeddings-inference, which says of a body whose it is."""

_FIRST = EmbedFloatsResponse | EmbedByTypeResponse

OPERATIONS = (
    Operation("POST", "/v1/embed", "cohere", "Texts to vectors.", embedder("1"), CohereEmbedRequest, _FIRST, computes=True),
    Operation("POST", "/v2/embed", "cohere", "Texts to vectors.", embedder("2"), CohereEmbedRequest, EmbedByTypeResponse, computes=True),
    Operation("POST", "/v1/rerank", "cohere", _RERANK, reranker("1"), CohereRerankRequest, RerankResponse, computes=True),
    Operation("POST", "/v2/rerank", "cohere", _RERANK, reranker("2"), CohereRerankRequest, RerankResponse, computes=True),
)
