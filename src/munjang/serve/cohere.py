"""Cohere's re-ranking: /v1/rerank and /v2/rerank, and /rerank for bodies that are Cohere's."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from munjang.models.cross_encoder import CrossEncoder
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.inputs import check_texts
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.cohere import CohereRerankRequest, RerankResponse
from munjang.serve.scoring import scored_pairs
from munjang.text.unicode import clean
from munjang.wording import count, plural

UNIT_DOCUMENTS = 100
"""Documents that Cohere counts as one search."""


def reranker(version: str) -> Callable[[Call, CohereRerankRequest], Awaitable[Reply]]:
    """Return the handler of one version; they differ in the name they give themselves."""

    async def rerank(call: Call, body: CohereRerankRequest) -> Reply:
        check_texts(call, body.documents, field="documents")
        texts = [_text(document, body.rank_fields, number) for number, document in enumerate(body.documents)]
        shortened = await call.service.in_text_thread(_shortened, call.service.reranker, texts, body.max_tokens_per_doc)
        scores = await scored_pairs(call, [(body.query, text) for text in shortened], score="sigmoid")
        order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n]
        results = [
            {"index": index, "relevance_score": scores[index], **({"document": {"text": texts[index]}} if body.return_documents else {})}
            for index in order
        ]
        units = {"search_units": -(-len(texts) // UNIT_DOCUMENTS)}
        meta: dict[str, Any] = {"api_version": {"version": version}, "billed_units": units}
        if call.seen.truncated:
            cut = len(call.seen.truncated)
            beginning = "its" if cut == 1 else "their"
            told = f"{count(cut, 'document')} {plural(cut, 'is')} longer than the model reads; only {beginning} beginning counted"
            meta["warnings"] = [told]
        return Reply({"id": secrets.token_hex(16), "results": results, "meta": meta}, headers=call.truncation_headers())

    return rerank


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


def operation(path: str, version: str) -> Operation:
    """Return the operation of one version on a path."""
    return Operation(
        "POST", path, "cohere", "Order documents by a query.", reranker(version), CohereRerankRequest, RerankResponse, computes=True
    )


OPERATIONS = tuple(operation(f"/v{version}/rerank", version) for version in ("1", "2"))
