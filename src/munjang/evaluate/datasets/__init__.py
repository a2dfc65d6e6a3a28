"""Data sets as typed rows: readers for STS, NLI, paraphrase and retrieval sets, and for plain files with named columns."""

from munjang.evaluate.datasets.beir import is_beir, read_beir
from munjang.evaluate.datasets.cranfield import is_cranfield, read_cranfield, read_cranfield_folder
from munjang.evaluate.datasets.read import (
    AnyDataset,
    ReadOptions,
    read_any,
    read_labelled_pairs,
    read_labelled_texts,
    read_scored_pairs,
    read_text_pairs,
    read_triplets,
)
from munjang.evaluate.datasets.rows import (
    DIFFERENT,
    NLI_LABELS,
    SAME,
    Dataset,
    LabelledPair,
    LabelledText,
    RetrievalTask,
    ScoredPair,
    TextPair,
    Triplet,
)
from munjang.evaluate.datasets.squad import read_squad
from munjang.evaluate.datasets.tasks import read_retrieval
from munjang.evaluate.datasets.trec import read_qrels, read_run, write_run

__all__ = [
    "DIFFERENT",
    "NLI_LABELS",
    "SAME",
    "AnyDataset",
    "Dataset",
    "LabelledPair",
    "LabelledText",
    "ReadOptions",
    "RetrievalTask",
    "ScoredPair",
    "TextPair",
    "Triplet",
    "is_beir",
    "is_cranfield",
    "read_any",
    "read_beir",
    "read_cranfield",
    "read_cranfield_folder",
    "read_labelled_pairs",
    "read_labelled_texts",
    "read_qrels",
    "read_retrieval",
    "read_run",
    "read_scored_pairs",
    "read_squad",
    "read_text_pairs",
    "read_triplets",
    "write_run",
]
