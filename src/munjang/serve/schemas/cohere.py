"""Cohere's vectors and re-ranking, version 1 and 2, and infinity's re-ranking."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from munjang.serve.schemas.base import DialectModel
from munjang.serve.schemas.openai import Usage

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
