"""OpenAI's routes, /v1/embeddings and /v1/models, and infinity's, which are the same without the prefix.

Vectors have length one, as OpenAI's have, also when they are shortened.
"""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any

import numpy as np

from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import shaped, vectors_of
from munjang.serve.schemas.openai import EmbeddingList, EmbeddingRequest, ModelCard, ModelList

_STARTED = int(time.time())


async def embeddings(call: Call, body: EmbeddingRequest) -> Reply:
    """Turn the input into vectors."""
    vectors = shaped(call, await vectors_of(call, body.input, field="input"), dimensions=body.dimensions, normalize=True)
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
