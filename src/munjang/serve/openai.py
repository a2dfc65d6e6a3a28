"""OpenAI's routes, /v1/embeddings and /v1/models, and infinity's, which are the same without the prefix: requests, answers, handlers.

Vectors have length one, as OpenAI's have, also when they are shortened.
"""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any, Literal

import numpy as np
from pydantic import Field

from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import shape_vectors, vectors_of
from munjang.serve.schema import DialectModel


class EmbeddingRequest(DialectModel):
    """Texts, or token ids of the served model, to turn into vectors."""

    input: str | list[str] | list[int] | list[list[int]]
    model: str | None = None
    """Which of the served models; where one alone is served, any name is taken. The answer says which model it was."""
    encoding_format: Literal["float", "base64"] | None = "float"
    """None is float."""
    dimensions: int | None = Field(default=None, ge=1)
    user: str | None = None


class Embedding(DialectModel):
    """One vector: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(DialectModel):
    """Tokens before any cut, special tokens included."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(DialectModel):
    """The vectors, in the order of the input."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage
    truncated: list[int] | None = None
    """Munjang's own: which inputs were longer than the model reads."""


class ModelCard(DialectModel):
    """A model that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(DialectModel):
    """All models that are served."""

    object: Literal["list"]
    data: list[ModelCard]


class OpenAIErrorDetail(DialectModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: Any


class OpenAIError(DialectModel):
    """An error as OpenAI's clients read it."""

    error: OpenAIErrorDetail


_STARTED = int(time.time())


async def embeddings(call: Call, body: EmbeddingRequest) -> Reply:
    """Turn the input into vectors."""
    vectors = shape_vectors(call, await vectors_of(call, body.input, field="input"), dimensions=body.dimensions, normalize=True)
    rows: list[Any] = list(vectors)
    if body.encoding_format == "base64":
        rows = [b64encode(np.ascontiguousarray(row, "<f4").tobytes()).decode("ascii") for row in vectors]
    answer: dict[str, Any] = {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)],
        "model": call.encoder.name,
        "usage": {"prompt_tokens": call.seen.tokens, "total_tokens": call.seen.tokens},
    }
    if call.seen.truncated:
        answer["truncated"] = call.seen.truncated
    return Reply(answer, headers=call.truncation_headers())


async def models(call: Call, _body: None) -> Reply:
    """List what is served."""
    return Reply({"object": "list", "data": _cards(call)})


async def model(call: Call, _body: None) -> Reply:
    """Describe one model."""
    card = next((card for card in _cards(call) if card["id"] == call.path["id"]), None)
    if card is None:
        raise Refusal(404, "no model of this name is served; GET /v1/models lists them", field="model")
    return Reply(card)


def _cards(call: Call) -> list[dict[str, Any]]:
    service = call.service
    names = [each.name for models in (service.encoders, service.rerankers, service.pair_classifiers) for each in models]
    return [{"id": name, "object": "model", "created": _STARTED, "owned_by": "munjang"} for name in names]


OPERATIONS = (
    Operation("POST", "/v1/embeddings", "openai", "Encode texts.", embeddings, EmbeddingRequest, EmbeddingList, computes=True),
    Operation("GET", "/v1/models", "openai", "The models that are served.", models, None, ModelList),
    Operation("GET", "/v1/models/{id:path}", "openai", "One model.", model, None, ModelCard),
    Operation("POST", "/embeddings", "infinity", "Texts to vectors.", embeddings, EmbeddingRequest, EmbeddingList, computes=True),
    Operation("GET", "/models", "infinity", "The models that are served.", models, None, ModelList),
)
