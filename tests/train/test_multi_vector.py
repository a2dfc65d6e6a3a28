"""Contrastive MaxSim: the loss is that of sentence-transformers, and a training makes a model find better."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, which training needs, is not installed")

from munjang.errors import UsageError  # noqa: E402
from munjang.models.multi_vector_encoder import MultiVectorEncoder  # noqa: E402
from munjang.train.multi_vector import MultiVectorRow, score_maxsim, train_multi_vector  # noqa: E402

WORDS = {"cat": "winter", "dog": "snow", "train": "river", "book": "coffee", "sun": "sleep"}


def make_rows() -> list[MultiVectorRow]:
    """Return questions of one word, each with a text that holds its counterpart, and one that holds another's."""
    others = [*list(WORDS.values())[1:], next(iter(WORDS.values()))]
    return [MultiVectorRow(asked, f"the {text} was", (f"in {other}",)) for (asked, text), other in zip(WORDS.items(), others, strict=True)]


def measure(model: MultiVectorEncoder) -> float:
    """Return how often a question's own text scores highest."""
    asked, texts = list(WORDS), [f"the {text} was" for text in WORDS.values()]
    scores = model.similarity(model.encode_query(asked), model.encode_document(texts))
    return float((scores.argmax(axis=1) == np.arange(len(asked))).mean())


def test_scores_are_those_of_sentence_transformers():
    similarity = pytest.importorskip("sentence_transformers.util.similarity", reason="the authority is not installed")
    generator = torch.Generator().manual_seed(1)
    queries, texts = (torch.nn.functional.normalize(torch.randn(3, 6, 8, generator=generator), dim=-1) for _ in range(2))
    everything = torch.ones(3, 6, dtype=torch.bool)
    expected = similarity.maxsim(list(queries), list(texts), length_normalize=True)
    torch.testing.assert_close(score_maxsim(queries, everything, texts, everything), expected)


def test_a_training_improves_retrieval_and_its_folder_loads(tiny_bert_folder, tmp_path):
    before = measure(MultiVectorEncoder.load(tiny_bert_folder))
    options = {"dimension": 16, "epochs": 60, "batch_size": 5, "learning_rate": 1e-3, "matryoshka": (8,), "dropout": 0.0}
    report = train_multi_vector(tiny_bert_folder, make_rows(), tmp_path / "out", **options)
    assert report.steps == 60
    assert report.last_loss < report.first_loss
    model = MultiVectorEncoder.load(tmp_path / "out")
    assert model.dimension == 16
    assert measure(model) >= before + 0.4


def test_a_teacher_and_too_few_rows(tiny_bert_folder, tmp_path):
    rows = [MultiVectorRow(row.query, row.positive, row.negatives, (3.0, 1.0)) for row in make_rows()[:4]]
    assert train_multi_vector(tiny_bert_folder, rows, tmp_path / "taught", dimension=8, batch_size=2).steps == 2
    with pytest.raises(UsageError, match="expected at least"):
        train_multi_vector(tiny_bert_folder, rows[:2], tmp_path / "few", batch_size=4)
    with pytest.raises(UsageError, match="one for each"):
        train_multi_vector(tiny_bert_folder, [MultiVectorRow("a", "b", (), (1.0, 2.0))] * 4, tmp_path / "odd", batch_size=4)
