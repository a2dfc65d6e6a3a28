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
    "munjang.models.multi_vector_encoder": ("MultiVectorEncoder",),
    "munjang.models.cross_encoder": ("CrossEncoder",),
    "munjang.models.late_reranker": ("LateReranker",),
    "munjang.models.ranking": ("RankedText", "Ranking"),
    "munjang.models.pair_classifier": ("PairClassifier",),
    "munjang.models.pair_scores": ("LabelScorer", "PairScores"),
    "munjang.models.score_pairs": ("score_pairs",),
    "munjang.models.long_text": ("TruncationWarning",),
    "munjang.models.export": ("ExportReport", "export_onnx"),
    "munjang.library.library": ("Library",),
    "munjang.library.ranking": ("Hybrid",),
    "munjang.library.index_config": ("Tuning",),
    "munjang.library.tune": ("TuneReport", "tune"),
    "munjang.library.indexing": ("AddReport",),
    "munjang.library.results": ("Hit", "Hits", "Info"),
    "munjang.library.store": ("Document",),
    "munjang.library.rerank": ("BudgetWarning",),
    "munjang.library.search": ("SearchWeights", "UnknownKeyWarning"),
    "munjang.vectors.similarity": ("similarity", "similarity_pairwise"),
    "munjang.vectors.topk": ("top_k",),
    "munjang.vectors.quantize": ("quantize",),
    "munjang.text.dictionary": ("Dictionary", "parse_dictionary", "read_dictionary"),
    "munjang.text.pos_analysers": ("use_analyser",),
    "munjang.text.tagging": ("choose_tagger",),
    "munjang.text.morphology": ("Morph", "Morphology", "Sentence", "analyse"),
    "munjang.analyze.keywords": ("Keyword", "Keywords", "extract_keywords", "find_cluster_phrases"),
    "munjang.analyze.clusters": ("Clustering", "cluster"),
    "munjang.analyze.dedupe": ("Deduped", "dedupe"),
    "munjang.analyze.match": ("Match", "Matched", "match"),
    "munjang.analyze.classify.apply": ("TextLabel", "TextLabels", "apply_classifier"),
    "munjang.analyze.classify.classifier": ("TextClassifier",),
    "munjang.analyze.classify.doubtful": ("draw_learning_curve", "find_doubtful"),
    "munjang.analyze.classify.fitting": ("fit_classifier",),
    "munjang.analyze.classify.labels": ("Label",),
    "munjang.analyze.classify.saving": ("load_classifier", "save_classifier"),
    "munjang.analyze.classify.tuning": ("TuneOutcome", "TunedFit", "fit_tuned_classifier"),
    "munjang.analyze.classify.zero_shot": ("classify_by_entailment", "classify_texts", "make_classifier"),
    "munjang.analyze.topics.fitting": ("fit_topics",),
    "munjang.analyze.topics.model": ("Assigned", "Topic", "TopicModel", "TopicSettings"),
    "munjang.analyze.topics.streaming": ("fit_topics_stream",),
    "munjang.analyze.topics.saving": ("load_topics", "save_topics"),
    "munjang.analyze.layout": ("lay_out",),
    "munjang.report.text_map": ("TextMap", "draw_map"),
    "munjang.tables": ("Table",),
    "munjang.analyze.pairs": ("MinedPairs", "Pair", "mine_pairs"),
    "munjang.analyze.topics.assign": ("assign_topics", "find_topics"),
    "munjang.analyze.topics.edit": ("merge_topics", "reduce_topics", "rename_topic", "set_outliers", "split_topic", "update_topics"),
    "munjang.analyze.topics.describe": ("topics_over_time", "topics_per_class"),
    "munjang.evaluate.calibrate": ("Calibration", "calibrate", "load_calibration"),
    "munjang.evaluate.clustering": ("evaluate_clustering",),
    "munjang.evaluate.compare": ("Comparison", "compare_pairs", "compare_retrieval", "compare_sts"),
    "munjang.evaluate.nli": ("evaluate_nli",),
    "munjang.evaluate.pairs": ("evaluate_pairs",),
    "munjang.evaluate.rerank": ("evaluate_rerank",),
    "munjang.evaluate.retrieval": ("evaluate_retrieval",),
    "munjang.evaluate.sts": ("evaluate_sts",),
    "munjang.evaluate.text_labels": ("LabelReport", "compare_label_sets", "compare_labels", "evaluate_label_sets", "evaluate_labels"),
    "munjang.evaluate.translation": ("evaluate_mse", "evaluate_translation"),
    "munjang.evaluate.triplets": ("evaluate_triplets",),
    "munjang.models.inspect": ("compare_tokens", "inspect_text"),
    "munjang.text.readers": ("read_texts",),
    "munjang.train.mine": ("MinedTriplets", "mine_negatives"),
    "munjang.train.augment": ("SilverPair", "label_pairs", "sample_pairs"),
    "munjang.bulk.dedupe_output": ("FolderDeduped", "dedupe_output"),
    "munjang.bulk.run": ("BulkReport", "encode_bulk", "finish_bulk"),
    "munjang.bulk.encode_batch": ("encode_batch",),
    "munjang.bulk.dask_frame": ("classify_dask", "encode_dask"),
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
    from munjang.analyze.classify.apply import TextLabel as TextLabel
    from munjang.analyze.classify.apply import TextLabels as TextLabels
    from munjang.analyze.classify.apply import apply_classifier as apply_classifier
    from munjang.analyze.classify.classifier import TextClassifier as TextClassifier
    from munjang.analyze.classify.doubtful import draw_learning_curve as draw_learning_curve
    from munjang.analyze.classify.doubtful import find_doubtful as find_doubtful
    from munjang.analyze.classify.fitting import fit_classifier as fit_classifier
    from munjang.analyze.classify.labels import Label as Label
    from munjang.analyze.classify.saving import load_classifier as load_classifier
    from munjang.analyze.classify.saving import save_classifier as save_classifier
    from munjang.analyze.classify.tuning import TunedFit as TunedFit
    from munjang.analyze.classify.tuning import TuneOutcome as TuneOutcome
    from munjang.analyze.classify.tuning import fit_tuned_classifier as fit_tuned_classifier
    from munjang.analyze.classify.zero_shot import classify_by_entailment as classify_by_entailment
    from munjang.analyze.classify.zero_shot import classify_texts as classify_texts
    from munjang.analyze.classify.zero_shot import make_classifier as make_classifier
    from munjang.analyze.clusters import Clustering as Clustering
    from munjang.analyze.clusters import cluster as cluster
    from munjang.analyze.dedupe import Deduped as Deduped
    from munjang.analyze.dedupe import dedupe as dedupe
    from munjang.analyze.keywords import Keyword as Keyword
    from munjang.analyze.keywords import Keywords as Keywords
    from munjang.analyze.keywords import extract_keywords as extract_keywords
    from munjang.analyze.keywords import find_cluster_phrases as find_cluster_phrases
    from munjang.analyze.layout import lay_out as lay_out
    from munjang.analyze.match import Match as Match
    from munjang.analyze.match import Matched as Matched
    from munjang.analyze.match import match as match
    from munjang.analyze.pairs import MinedPairs as MinedPairs
    from munjang.analyze.pairs import Pair as Pair
    from munjang.analyze.pairs import mine_pairs as mine_pairs
    from munjang.analyze.topics.assign import assign_topics as assign_topics
    from munjang.analyze.topics.assign import find_topics as find_topics
    from munjang.analyze.topics.describe import topics_over_time as topics_over_time
    from munjang.analyze.topics.describe import topics_per_class as topics_per_class
    from munjang.analyze.topics.edit import merge_topics as merge_topics
    from munjang.analyze.topics.edit import reduce_topics as reduce_topics
    from munjang.analyze.topics.edit import rename_topic as rename_topic
    from munjang.analyze.topics.edit import set_outliers as set_outliers
    from munjang.analyze.topics.edit import split_topic as split_topic
    from munjang.analyze.topics.edit import update_topics as update_topics
    from munjang.analyze.topics.fitting import fit_topics as fit_topics
    from munjang.analyze.topics.model import Assigned as Assigned
    from munjang.analyze.topics.model import Topic as Topic
    from munjang.analyze.topics.model import TopicModel as TopicModel
    from munjang.analyze.topics.model import TopicSettings as TopicSettings
    from munjang.analyze.topics.saving import load_topics as load_topics
    from munjang.analyze.topics.saving import save_topics as save_topics
    from munjang.analyze.topics.streaming import fit_topics_stream as fit_topics_stream
    from munjang.bulk.dask_frame import classify_dask as classify_dask
    from munjang.bulk.dask_frame import encode_dask as encode_dask
    from munjang.bulk.dedupe_output import FolderDeduped as FolderDeduped
    from munjang.bulk.dedupe_output import dedupe_output as dedupe_output
    from munjang.bulk.encode_batch import encode_batch as encode_batch
    from munjang.bulk.run import BulkReport as BulkReport
    from munjang.bulk.run import encode_bulk as encode_bulk
    from munjang.bulk.run import finish_bulk as finish_bulk
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
    from munjang.evaluate.calibrate import Calibration as Calibration
    from munjang.evaluate.calibrate import calibrate as calibrate
    from munjang.evaluate.calibrate import load_calibration as load_calibration
    from munjang.evaluate.clustering import evaluate_clustering as evaluate_clustering
    from munjang.evaluate.compare import Comparison as Comparison
    from munjang.evaluate.compare import compare_pairs as compare_pairs
    from munjang.evaluate.compare import compare_retrieval as compare_retrieval
    from munjang.evaluate.compare import compare_sts as compare_sts
    from munjang.evaluate.nli import evaluate_nli as evaluate_nli
    from munjang.evaluate.pairs import evaluate_pairs as evaluate_pairs
    from munjang.evaluate.rerank import evaluate_rerank as evaluate_rerank
    from munjang.evaluate.retrieval import evaluate_retrieval as evaluate_retrieval
    from munjang.evaluate.sts import evaluate_sts as evaluate_sts
    from munjang.evaluate.text_labels import LabelReport as LabelReport
    from munjang.evaluate.text_labels import compare_label_sets as compare_label_sets
    from munjang.evaluate.text_labels import compare_labels as compare_labels
    from munjang.evaluate.text_labels import evaluate_label_sets as evaluate_label_sets
    from munjang.evaluate.text_labels import evaluate_labels as evaluate_labels
    from munjang.evaluate.translation import evaluate_mse as evaluate_mse
    from munjang.evaluate.translation import evaluate_translation as evaluate_translation
    from munjang.evaluate.triplets import evaluate_triplets as evaluate_triplets
    from munjang.library.index_config import Tuning as Tuning
    from munjang.library.indexing import AddReport as AddReport
    from munjang.library.library import Library as Library
    from munjang.library.ranking import Hybrid as Hybrid
    from munjang.library.rerank import BudgetWarning as BudgetWarning
    from munjang.library.results import Hit as Hit
    from munjang.library.results import Hits as Hits
    from munjang.library.results import Info as Info
    from munjang.library.search import SearchWeights as SearchWeights
    from munjang.library.search import UnknownKeyWarning as UnknownKeyWarning
    from munjang.library.store import Document as Document
    from munjang.library.tune import TuneReport as TuneReport
    from munjang.library.tune import tune as tune
    from munjang.models.batch_encoder import Encoded as Encoded
    from munjang.models.batch_encoder import TokenVectors as TokenVectors
    from munjang.models.cross_encoder import CrossEncoder as CrossEncoder
    from munjang.models.export import ExportReport as ExportReport
    from munjang.models.export import export_onnx as export_onnx
    from munjang.models.inspect import compare_tokens as compare_tokens
    from munjang.models.inspect import inspect_text as inspect_text
    from munjang.models.late_reranker import LateReranker as LateReranker
    from munjang.models.long_text import TruncationWarning as TruncationWarning
    from munjang.models.multi_vector_encoder import MultiVectorEncoder as MultiVectorEncoder
    from munjang.models.pair_classifier import PairClassifier as PairClassifier
    from munjang.models.pair_scores import LabelScorer as LabelScorer
    from munjang.models.pair_scores import PairScores as PairScores
    from munjang.models.prompted_encoder import PromptedEncoder as PromptedEncoder
    from munjang.models.ranking import RankedText as RankedText
    from munjang.models.ranking import Ranking as Ranking
    from munjang.models.score_pairs import score_pairs as score_pairs
    from munjang.models.sentence_encoder import SentenceEncoder as SentenceEncoder
    from munjang.report.text_map import TextMap as TextMap
    from munjang.report.text_map import draw_map as draw_map
    from munjang.tables import Table as Table
    from munjang.text.dictionary import Dictionary as Dictionary
    from munjang.text.dictionary import parse_dictionary as parse_dictionary
    from munjang.text.dictionary import read_dictionary as read_dictionary
    from munjang.text.morphology import Morph as Morph
    from munjang.text.morphology import Morphology as Morphology
    from munjang.text.morphology import Sentence as Sentence
    from munjang.text.morphology import analyse as analyse
    from munjang.text.pos_analysers import use_analyser as use_analyser
    from munjang.text.readers import read_texts as read_texts
    from munjang.text.tagging import choose_tagger as choose_tagger
    from munjang.train.augment import SilverPair as SilverPair
    from munjang.train.augment import label_pairs as label_pairs
    from munjang.train.augment import sample_pairs as sample_pairs
    from munjang.train.mine import MinedTriplets as MinedTriplets
    from munjang.train.mine import mine_negatives as mine_negatives
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
