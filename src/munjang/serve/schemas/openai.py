"""OpenAI's embeddings and models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from munjang.serve.schemas.base import DialectModel


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
