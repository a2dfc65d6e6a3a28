"""Cohere's vectors and re-ranking, /v1 and /v2, and the re-ranking of infinity at /rerank, which is Cohere's with texts as they are.

Vectors have length one. Those of int8 and uint8 have fixed ranges (`unit_ranges`), so that vectors of two requests can be compared.
"""

from __future__ import annotations

import secrets
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from munjang.models.cross_encoder import CrossEncoder
from munjang.models.prompted_encoder import ROLE_PROMPTS
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts, shaped, vectors_of
from munjang.serve.prepare import Cutting
from munjang.serve.schemas.cohere import (
    CohereEmbedRequest,
    CohereRerankRequest,
    EmbedByTypeResponse,
    EmbeddingType,
    EmbedFloatsResponse,
    InfinityRerankRequest,
    InfinityRerankResponse,
    InputType,
    RerankResponse,
)
from munjang.serve.scoring import scored_pairs
from munjang.text.unicode import clean
from munjang.types import Precision, Vectors
from munjang.vectors.quantize import quantize
from munjang.wording import count, plural

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
        unit_ND = shaped(call, vectors, dimensions=body.output_dimension, normalize=True)
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
        texts, ranks = await _ranked(call, body)
        results = [
            {"index": index, "relevance_score": score, **({"document": {"text": texts[index]}} if body.return_documents else {})}
            for index, score in ranks
        ]
        meta = _meta(call, version, "document", search_units=-(-len(texts) // UNIT_DOCUMENTS))
        return Reply({"id": secrets.token_hex(16), "results": results, "meta": meta}, headers=call.truncation_headers())

    return rerank


async def infinity_rerank(call: Call, body: InfinityRerankRequest) -> Reply:
    """Answer as infinity does: a document comes back as its text alone."""
    texts, ranks = await _ranked(call, body, raw=body.raw_scores)
    results = [
        {"index": index, "relevance_score": score, **({"document": texts[index]} if body.return_documents else {})}
        for index, score in ranks
    ]
    tokens = call.errand.tokens
    answer = {
        "object": "rerank",
        "id": secrets.token_hex(16),
        "created": int(time.time()),
        "model": call.reranker.name,
        "results": results,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return Reply(answer, headers=call.truncation_headers())


async def _ranked(call: Call, body: CohereRerankRequest, *, raw: bool = False) -> tuple[list[str], list[tuple[int, float]]]:
    """Return the documents' texts, and the places of the best of them with their scores, best first."""
    check_texts(call, body.documents, field="documents")
    texts = [_text(document, body.rank_fields, number) for number, document in enumerate(body.documents)]
    shortened = await call.service.in_text_thread(_shortened, call.reranker, texts, body.max_tokens_per_doc)
    scores = await scored_pairs(call, [(body.query, text) for text in shortened], score="logits" if raw else "sigmoid")
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


def _shortened(model: CrossEncoder, texts: list[str], limit: int | None) -> list[str]:
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
