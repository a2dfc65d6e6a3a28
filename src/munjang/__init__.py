"""Munjang (문장): encode sentences as vectors, search and analyse them, train models.

>>> from munjang import SentenceEncoder
>>> model = SentenceEncoder.load()                            # doctest: +SKIP
>>> vectors = model.encode(["비가 온다", "It is raining"])      # doctest: +SKIP

Names are loaded when they are first used: `import munjang` itself costs next to nothing, and never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    "munjang.models.sentence_encoder": ("SentenceEncoder",),
    "munjang.models.batch_encoder": ("Encoded", "TokenVectors"),
    "munjang.models.prompted_encoder": ("PromptedEncoder",),
    "munjang.models.cross_encoder": ("CrossEncoder", "PairScores", "RankedText", "Ranking"),
    "munjang.models.long_text": ("TruncationWarning",),
    "munjang.models.export": ("ExportReport", "export_onnx"),
    "munjang.library.library": ("Library",),
    "munjang.library.ranking": ("Hybrid",),
    "munjang.library.index_config": ("Tuning",),
    "munjang.library.indexing": ("AddReport",),
    "munjang.library.results": ("Hit", "Info"),
    "munjang.library.store": ("Document",),
    "munjang.library.rerank": ("BudgetWarning",),
    "munjang.library.search": ("UnknownKeyWarning",),
    "munjang.vectors.similarity": ("similarity", "similarity_pairwise"),
    "munjang.vectors.topk": ("top_k",),
    "munjang.vectors.quantize": ("quantize",),
    "munjang.analyze.keywords": ("Keyword", "extract_keywords"),
    "munjang.analyze.clusters": ("Clustering", "cluster"),
    "munjang.analyze.dedupe": ("Deduped", "dedupe"),
    "munjang.analyze.match": ("Match", "Matched", "match"),
    "munjang.analyze.topics.fitting": ("fit_topics",),
    "munjang.analyze.topics.model": ("Topic", "TopicModel"),
    "munjang.analyze.topics.saving": ("load_topics", "save_topics"),
    "munjang.analyze.topics.settings": ("TopicSettings",),
    "munjang.bulk.run": ("BulkReport", "WorkerConfig", "encode_bulk"),
    "munjang.bulk.settings": ("BulkSettings",),
    "munjang.bulk.dask_frame": ("encode_dask",),
    "munjang.types": ("Encoder", "Scorer"),
    "munjang.errors": (
        "Busy",
        "DamagedFile",
        "DeviceError",
        "FolderError",
        "InputError",
        "MissingExtra",
        "MunjangError",
        "NoSpace",
        "TextError",
        "UsageError",
    ),
}
"""The public names of each module."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from munjang.analyze.clusters import Clustering as Clustering
    from munjang.analyze.clusters import cluster as cluster
    from munjang.analyze.dedupe import Deduped as Deduped
    from munjang.analyze.dedupe import dedupe as dedupe
    from munjang.analyze.keywords import Keyword as Keyword
    from munjang.analyze.keywords import extract_keywords as extract_keywords
    from munjang.analyze.match import Match as Match
    from munjang.analyze.match import Matched as Matched
    from munjang.analyze.match import match as match
    from munjang.analyze.topics.fitting import fit_topics as fit_topics
    from munjang.analyze.topics.model import Topic as Topic
    from munjang.analyze.topics.model import TopicModel as TopicModel
    from munjang.analyze.topics.saving import load_topics as load_topics
    from munjang.analyze.topics.saving import save_topics as save_topics
    from munjang.analyze.topics.settings import TopicSettings as TopicSettings
    from munjang.bulk.dask_frame import encode_dask as encode_dask
    from munjang.bulk.run import BulkReport as BulkReport
    from munjang.bulk.run import WorkerConfig as WorkerConfig
    from munjang.bulk.run import encode_bulk as encode_bulk
    from munjang.bulk.settings import BulkSettings as BulkSettings
    from munjang.errors import Busy as Busy
    from munjang.errors import DamagedFile as DamagedFile
    from munjang.errors import DeviceError as DeviceError
    from munjang.errors import FolderError as FolderError
    from munjang.errors import InputError as InputError
    from munjang.errors import MissingExtra as MissingExtra
    from munjang.errors import MunjangError as MunjangError
    from munjang.errors import NoSpace as NoSpace
    from munjang.errors import TextError as TextError
    from munjang.errors import UsageError as UsageError
    from munjang.library.index_config import Tuning as Tuning
    from munjang.library.indexing import AddReport as AddReport
    from munjang.library.library import Library as Library
    from munjang.library.ranking import Hybrid as Hybrid
    from munjang.library.rerank import BudgetWarning as BudgetWarning
    from munjang.library.results import Hit as Hit
    from munjang.library.results import Info as Info
    from munjang.library.search import UnknownKeyWarning as UnknownKeyWarning
    from munjang.library.store import Document as Document
    from munjang.models.batch_encoder import Encoded as Encoded
    from munjang.models.batch_encoder import TokenVectors as TokenVectors
    from munjang.models.cross_encoder import CrossEncoder as CrossEncoder
    from munjang.models.cross_encoder import PairScores as PairScores
    from munjang.models.cross_encoder import RankedText as RankedText
    from munjang.models.cross_encoder import Ranking as Ranking
    from munjang.models.export import ExportReport as ExportReport
    from munjang.models.export import export_onnx as export_onnx
    from munjang.models.long_text import TruncationWarning as TruncationWarning
    from munjang.models.prompted_encoder import PromptedEncoder as PromptedEncoder
    from munjang.models.sentence_encoder import SentenceEncoder as SentenceEncoder
    from munjang.types import Encoder as Encoder
    from munjang.types import Scorer as Scorer
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
