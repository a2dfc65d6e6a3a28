"""Munjang for MTEB 2: an encoder and a cross-encoder that `mteb.evaluate` accepts.

MTEB asks for methods, not for a base class, so nothing of it is imported before it asks who the model is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from munjang.adapters.loading import Model, Reranker, load_encoder, load_reranker, make_missing_error
from munjang.models.prompted_encoder import ROLE_PROMPTS
from munjang.models.ranking import Ranker
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import DEFAULT_COMPUTE, DEFAULT_PRECISION, Compute, Floats, Precision

Batches = Iterable[Mapping[str, Any]]
"""What MTEB hands over: a loader whose batches hold a list of texts under "text"."""


class MtebTask(Protocol):
    """What is read of MTEB's task metadata."""

    name: str
    type: str


class MunjangEncoder:
    """A sentence encoder as MTEB's `EncoderProtocol` wants it."""

    def __init__(self, model: Model = None, *, compute: Compute = DEFAULT_COMPUTE) -> None:
        self.model = load_encoder(model, compute=compute)

    def encode(
        self,
        inputs: Batches,
        *,
        task_metadata: MtebTask,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        precision: Precision = DEFAULT_PRECISION,
        **options: Any,
    ) -> Floats:
        """Return one row per text, read with the most special prompt that the model has for the task.

        MTEB's further options (the size of a batch, a progress bar) are for others: batches are planned by tokens here.
        """
        del hf_split, hf_subset, options
        role = None if prompt_type is None else str(prompt_type.value)
        name = choose_prompt_name(self.model.prompts, task_metadata, role)
        return self.model.encode(_list_texts(inputs), prompt_name=name, precision=precision)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Floats:
        """Return all-pairs similarity by the model's own metric."""
        return self.model.similarity(_list_rows(embeddings1), _list_rows(embeddings2))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Floats:
        """Return the similarity of each row with the same row."""
        return self.model.similarity_pairwise(_list_rows(embeddings1), _list_rows(embeddings2))

    @property
    def mteb_model_meta(self) -> Any:
        """Who the model is, for MTEB's results."""
        facts = {"embed_dim": self.model.dimension, "similarity_fn_name": self.model.folder.similarity, "model_type": ["dense"]}
        return _make_meta(self.model, facts)


class MunjangMTEBCrossEncoder:
    """A cross-encoder as MTEB's `CrossEncoderProtocol` wants it, for re-ranking tasks."""

    def __init__(self, model: Reranker = None, *, compute: Compute = DEFAULT_COMPUTE) -> None:
        self.model = load_reranker(model, compute=compute)

    def predict(
        self,
        inputs1: Batches,
        inputs2: Batches,
        *,
        task_metadata: MtebTask,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **options: Any,
    ) -> Floats:
        """Return one score per pair; MTEB's options are for others."""
        del task_metadata, hf_split, hf_subset, prompt_type, options
        return self.model.predict(list(zip(_list_texts(inputs1), _list_texts(inputs2), strict=True)))

    @property
    def mteb_model_meta(self) -> Any:
        """Who the model is, for MTEB's results."""
        return _make_meta(self.model, {"model_type": ["cross-encoder"]})


def choose_prompt_name(prompts: Mapping[str, str], task: MtebTask, role: str | None) -> str | None:
    """Return the name of the most special prompt: for a task and a role, a task, a kind of task and a role, a kind, a role."""
    of_role = [f"{task.name}-{role}", task.name, f"{task.type}-{role}", task.type] if role else [task.name, task.type]
    general = ROLE_PROMPTS["query"] if role == "query" else ROLE_PROMPTS["document"] if role == "document" else ()
    return next((name for name in (*of_role, *general) if name in prompts), None)


def _list_texts(inputs: Batches) -> list[str]:
    return [text for batch in inputs for text in batch["text"]]


def _list_rows(vectors: Any) -> Floats:
    return np.asarray(vectors, np.float32)  # MTEB may have made tensors of them


def _make_meta(model: SentenceEncoder | Ranker, facts: dict[str, Any]) -> Any:
    try:
        from mteb.models.model_meta import ModelMeta, ScoringFunction
    except ImportError as error:
        raise make_missing_error("mteb", "mteb", error) from error
    if "similarity_fn_name" in facts:
        facts |= {"similarity_fn_name": ScoringFunction(facts["similarity_fn_name"])}
    name = model.name if "/" in model.name else f"munjang/{model.name}"
    common = {"name": name, "revision": model.fingerprint, "max_tokens": model.max_length, "framework": ["ONNX"], "open_weights": True}
    return ModelMeta.create_empty(common | facts)
