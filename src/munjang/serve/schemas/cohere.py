"""Cohere's re-ranking, version 1 and 2."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from munjang.serve.schemas.base import DialectModel


class CohereRerankRequest(DialectModel):
    """A query and the documents to order; a document is a text or an object of texts."""

    query: str
    documents: list[str | dict[str, Any]]
    model: str = ""
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False
    max_tokens_per_doc: int | None = Field(default=None, ge=1)
    rank_fields: list[str] | None = None


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

    search_units: int


class RerankMeta(DialectModel):
    """What Cohere's clients expect beside the results."""

    api_version: ApiVersion
    billed_units: BilledUnits
    warnings: list[str] | None = None


class RerankResponse(DialectModel):
    """The documents, best first."""

    id: str
    results: list[RerankResult]
    meta: RerankMeta


class CohereError(DialectModel):
    """An error as Cohere's clients read it."""

    message: str
