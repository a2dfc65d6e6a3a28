"""The dialect of text-embeddings-inference, which Hugging Face's clients speak too."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from munjang.serve.schema import DialectModel

Side = Literal["left", "right", "Left", "Right"]


class EmbedRequest(DialectModel):
    """Texts, or token ids of the served model."""

    inputs: str | list[str] | list[int] | list[list[int]]
    truncate: bool | None = None
    """False: refuse a text that is too long. Otherwise it is cut, and the answer's headers say which."""
    truncation_direction: Side = "right"
    prompt_name: str | None = None
    normalize: bool = True
    dimensions: int | None = Field(default=None, ge=1)


class EmbedAllRequest(DialectModel):
    """Texts to encode token by token."""

    inputs: str | list[str]
    truncate: bool | None = None
    prompt_name: str | None = None


class EmbedSparseRequest(DialectModel):
    """Texts to encode as sparse vectors."""

    inputs: str | list[str] | list[int] | list[list[int]]
    truncate: bool | None = None
    truncation_direction: Side = "right"
    prompt_name: str | None = None


class SparseValue(DialectModel):
    """One number of a sparse vector that is not zero."""

    index: int
    value: float


class TeiRerankRequest(DialectModel):
    """A query and the texts to order."""

    query: str
    texts: list[str]
    truncate: bool | None = None
    truncation_direction: Side = "right"
    raw_scores: bool = False
    return_text: bool = False


class Rank(DialectModel):
    """One text's place."""

    index: int
    score: float
    text: str | None = None


class SimilarityInputs(DialectModel):
    """One sentence and those to compare it with."""

    source_sentence: str
    sentences: list[str]


class SimilarityParameters(DialectModel):
    """How the sentences are read."""

    truncate: bool | None = None
    truncation_direction: Side = "right"
    prompt_name: str | None = None


class TeiSimilarityRequest(DialectModel):
    """One sentence against many."""

    inputs: SimilarityInputs
    parameters: SimilarityParameters | None = None


class PredictRequest(DialectModel):
    """A text, a pair, or a list of texts and pairs (each a list of one or two texts)."""

    inputs: str | list[str] | list[list[str]]
    truncate: bool | None = None
    truncation_direction: Side = "right"
    raw_scores: bool = False


class Prediction(DialectModel):
    """A label and its score."""

    label: str
    score: float


class TokenizeRequest(DialectModel):
    """Texts to cut into tokens."""

    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = None


class SimpleToken(DialectModel):
    """One token; start and stop count characters."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class DecodeRequest(DialectModel):
    """Token ids to turn back into text."""

    ids: list[int] | list[list[int]]
    skip_special_tokens: bool = True


class MainRequest(DialectModel):
    """What Hugging Face's clients post to a model's own address: texts, or a sentence and others."""

    inputs: str | list[str] | list[int] | list[list[int]] | SimilarityInputs
    parameters: SimilarityParameters | None = None
    truncate: bool | None = None
    truncation_direction: Side = "right"
    prompt_name: str | None = None
    normalize: bool = True
    dimensions: int | None = Field(default=None, ge=1)


class EmbeddingModelType(DialectModel):
    """What an embedding model does."""

    pooling: str


class ModelType(DialectModel):
    """What kind of model is served."""

    embedding: EmbeddingModelType


class TeiInfo(DialectModel):
    """What the server is."""

    model_id: str
    model_sha: str | None
    model_dtype: str
    served_model_name: str
    model_type: ModelType
    max_concurrent_requests: int
    max_input_length: int | None
    max_batch_tokens: int
    max_batch_requests: int | None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    sha: str | None
    docker_label: str | None
    dimension: int
    reranker: str | None


class TeiError(DialectModel):
    """An error as TEI's clients read it."""

    error: str
    error_type: Literal["Unhealthy", "Backend", "Overloaded", "Validation", "Tokenizer", "Empty"]
