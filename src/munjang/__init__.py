"""Munjang (문장): sentences to vectors, and what can be done with them.

>>> from munjang import SentenceEncoder
>>> model = SentenceEncoder.load()                            # doctest: +SKIP
>>> vectors = model.encode(["비가 온다", "It is raining"])      # doctest: +SKIP

Names are loaded when they are first used: `import munjang` itself costs next to nothing, and never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "SentenceEncoder": "munjang.models.sentence_encoder",
    "Encoded": "munjang.models.encoded",
    "TokenVectors": "munjang.models.encoded",
    "CrossEncoder": "munjang.models.cross_encoder",
    "TruncationWarning": "munjang.models.long_text",
    "Library": "munjang.library.library",
    "MunjangError": "munjang.errors",
    "similarity": "munjang.vectors.similarity",
    "similarity_pairwise": "munjang.vectors.similarity",
    "top_k": "munjang.vectors.topk",
    "quantize": "munjang.vectors.quantize",
    "export_onnx": "munjang.models.export",
    "BudgetWarning": "munjang.library.rerank",
    "UnknownKeyWarning": "munjang.library.where_keys",
    "encode_bulk": "munjang.bulk.run",
    "encode_dask": "munjang.bulk.dask_frame",
    "extract_keywords": "munjang.analyze.keywords",
    "cluster": "munjang.analyze.clusters",
    "fit_topics": "munjang.analyze.topics.fitting",
    "load_topics": "munjang.analyze.topics.saving",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from munjang.analyze.clusters import cluster as cluster
    from munjang.analyze.keywords import extract_keywords as extract_keywords
    from munjang.analyze.topics.fitting import fit_topics as fit_topics
    from munjang.analyze.topics.saving import load_topics as load_topics
    from munjang.bulk.dask_frame import encode_dask as encode_dask
    from munjang.bulk.run import encode_bulk as encode_bulk
    from munjang.errors import MunjangError as MunjangError
    from munjang.library.library import Library as Library
    from munjang.library.rerank import BudgetWarning as BudgetWarning
    from munjang.library.where_keys import UnknownKeyWarning as UnknownKeyWarning
    from munjang.models.cross_encoder import CrossEncoder as CrossEncoder
    from munjang.models.encoded import Encoded as Encoded
    from munjang.models.encoded import TokenVectors as TokenVectors
    from munjang.models.export import export_onnx as export_onnx
    from munjang.models.long_text import TruncationWarning as TruncationWarning
    from munjang.models.sentence_encoder import SentenceEncoder as SentenceEncoder
    from munjang.vectors.quantize import quantize as quantize
    from munjang.vectors.similarity import similarity as similarity
    from munjang.vectors.similarity import similarity_pairwise as similarity_pairwise
    from munjang.vectors.topk import top_k as top_k


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'munjang' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
