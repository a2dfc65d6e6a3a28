"""What serve.py compares with: the obvious server around sentence-transformers, one process, one text at a time.

    python benchmarks/serve_plain.py FOLDER PORT

Starlette reads the JSON, `model.encode` computes, Starlette writes the JSON; torch uses all cores for each text. Needs no part of Munjang.
"""

from __future__ import annotations

import sys

import uvicorn
from sentence_transformers import SentenceTransformer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def make_app(folder: str) -> Starlette:
    """Return the app."""
    model = SentenceTransformer(folder, device="cpu")

    async def embeddings(request: Request) -> JSONResponse:
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = model.encode(texts, normalize_embeddings=True, show_progress_bar=False).tolist()
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        return JSONResponse({"object": "list", "data": data, "model": folder})

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({})

    return Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"]), Route("/health", health)])


if __name__ == "__main__":
    uvicorn.run(make_app(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="critical")
