"""MTEB runs tasks over data of ours with the adapters, and gets the scores that it gets with sentence-transformers."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapters.conftest import SHORT, library

from munjang import CrossEncoder, SentenceEncoder
from munjang.adapters.mteb import MunjangEncoder, MunjangMTEBCrossEncoder, choose_prompt_name

MISSING = importlib.util.find_spec("mteb") is None
needs_mteb = pytest.mark.skipif(MISSING, reason="mteb, which the adapter is for, is not installed")
SCORES = [5.0, 1.0, 3.0, 0.0, 2.0, 4.0]


@dataclass(frozen=True)
class Named:
    name: str = "OurSTS"
    type: str = "STS"


@pytest.mark.parametrize(
    ("prompts", "role", "expected"),
    [
        ({}, "query", None),
        ({"query": "q"}, "query", "query"),
        ({"query": "q"}, None, None),
        ({"passage": "p"}, "document", "passage"),
        ({"query": "q", "STS": "s"}, "query", "STS"),
        ({"STS": "s", "STS-query": "sq"}, "query", "STS-query"),
        ({"STS-query": "sq", "OurSTS": "o"}, "query", "OurSTS"),
        ({"OurSTS": "o", "OurSTS-query": "oq"}, "query", "OurSTS-query"),
        ({"OurSTS": "o", "OurSTS-query": "oq"}, None, "OurSTS"),
    ],
    ids=["none", "role", "no role", "passage", "kind", "kind and role", "task", "task and role", "task without role"],
)
def test_the_most_special_prompt_is_used(prompts: Mapping[str, str], role: str | None, expected: str | None) -> None:
    assert choose_prompt_name(prompts, Named(), role) == expected


def test_batches_are_read_in_order(model: SentenceEncoder) -> None:
    batches = [{"text": SHORT[:2]}, {"text": SHORT[2:]}]
    found = MunjangEncoder(model).encode(batches, task_metadata=Named(), hf_split="test", hf_subset="default", batch_size=2)
    np.testing.assert_allclose(found, model.encode(SHORT), atol=1e-6)


def test_similarity_is_the_models_own(model: SentenceEncoder) -> None:
    made, vectors = MunjangEncoder(model), model.encode(SHORT)
    np.testing.assert_allclose(made.similarity(vectors, vectors[:2]), model.similarity(vectors, vectors[:2]))
    np.testing.assert_allclose(made.similarity_pairwise(vectors, vectors), np.ones(len(SHORT)), atol=1e-5)


def metadata(kind: str) -> Any:
    return library("mteb.abstasks.task_metadata").TaskMetadata(
        name=f"Our{kind}",
        description="A few sentences of ours.",
        dataset={"path": "none/none", "revision": "1"},
        type=kind,
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["kor-Hang"],
        main_score="cosine_spearman" if kind == "STS" else "ndcg_at_10",
    )


def sts_task() -> Any:
    tasks, datasets = library("mteb.abstasks"), library("datasets")

    class OurSTS(tasks.AbsTaskSTS):
        metadata = metadata("STS")
        min_score, max_score = 0, 5

        def load_data(self, **options: Any) -> None:
            rows = {"sentence1": SHORT, "sentence2": [*SHORT[1:], SHORT[0]], "score": SCORES}
            self.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_dict(rows)})
            self.data_loaded = True

    return OurSTS()


def retrieval_task(*, candidates: bool) -> Any:
    tasks, datasets = library("mteb.abstasks"), library("datasets")
    loaders = library("mteb.abstasks.retrieval_dataset_loaders")

    class OurSearch(tasks.AbsTaskRetrieval):
        metadata = metadata("Reranking" if candidates else "Retrieval")

        def load_data(self, **options: Any) -> None:
            corpus = [{"id": f"d{number}", "title": "", "text": text} for number, text in enumerate(SHORT)]
            queries = [{"id": f"q{number}", "text": text[:9]} for number, text in enumerate(SHORT)]
            split = loaders.RetrievalSplitData(
                corpus=datasets.Dataset.from_list(corpus),
                queries=datasets.Dataset.from_list(queries),
                relevant_docs={f"q{number}": {f"d{number}": 1} for number in range(len(SHORT))},
                top_ranked={query["id"]: [document["id"] for document in corpus] for query in queries} if candidates else None,
            )
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    return OurSearch()


def scores(model: Any, task: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = library("mteb").evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    [row] = found.task_results[0].scores["test"]
    return dict(row)


def same_scores(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    numbers = {name for name, value in theirs.items() if isinstance(value, float)}
    assert numbers
    assert {name: ours[name] for name in numbers} == pytest.approx({name: theirs[name] for name in numbers}, abs=1e-4, nan_ok=True)


@pytest.mark.slow
@needs_mteb
def test_mteb_knows_who_it_is(model: SentenceEncoder, reranker: CrossEncoder) -> None:
    protocols = library("mteb.models.models_protocols")
    assert isinstance(MunjangEncoder(model), protocols.EncoderProtocol)
    assert isinstance(MunjangMTEBCrossEncoder(reranker), protocols.CrossEncoderProtocol)
    meta = MunjangEncoder(model).mteb_model_meta
    assert (meta.name, meta.revision, meta.embed_dim) == (f"munjang/{model.name}", model.fingerprint, model.dimension)
    assert MunjangMTEBCrossEncoder(reranker).mteb_model_meta.is_cross_encoder


@pytest.mark.slow
@needs_mteb
def test_similarity_and_search_score_as_with_sentence_transformers(tiny_bert_folder: Path, model: SentenceEncoder) -> None:
    theirs = library("sentence_transformers").SentenceTransformer(str(tiny_bert_folder), device="cpu")
    same_scores(scores(MunjangEncoder(model), sts_task()), scores(theirs, sts_task()))
    same_scores(scores(MunjangEncoder(model), retrieval_task(candidates=False)), scores(theirs, retrieval_task(candidates=False)))


@pytest.mark.slow
@needs_mteb
def test_re_ranking_scores_as_with_sentence_transformers(reranker: CrossEncoder) -> None:
    theirs = library("sentence_transformers").CrossEncoder(str(reranker.folder.path), device="cpu")
    same_scores(scores(MunjangMTEBCrossEncoder(reranker), retrieval_task(candidates=True)), scores(theirs, retrieval_task(candidates=True)))
