"""Multi-vector models by recipe: losses are sentence-transformers', a training makes a model find better, and its folder loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, which training needs, is not installed")

from munjang.errors import InputError, UsageError  # noqa: E402
from munjang.models.multi_vector_encoder import MultiVectorEncoder  # noqa: E402
from munjang.train import train  # noqa: E402
from munjang.train.load_folder import load_encoder  # noqa: E402
from munjang.train.multi_vector import DIMENSION, encode_tokens, score_tokens  # noqa: E402
from munjang.train.objectives.late_interaction import score_maxsim  # noqa: E402
from munjang.train.objectives.registry import make_objective  # noqa: E402
from munjang.train.recipe import make_recipe  # noqa: E402

WORDS = {"cat": "winter", "dog": "snow", "train": "river", "book": "coffee", "sun": "sleep"}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Write questions of one word, each with a text that holds its counterpart, and one that holds another's."""
    others = [*list(WORDS.values())[1:], next(iter(WORDS.values()))]
    rows = [f"{asked}\tthe {text} was\tin {other}\t3\t1" for (asked, text), other in zip(WORDS.items(), others, strict=True)]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(["question\tanswer\twrong\tgood\tbad", *rows]), encoding="utf-8")
    return path


def make_values(base: Path, **changes: Any) -> dict[str, Any]:
    data = {"path": "pairs.tsv", "texts": ["question", "answer", "wrong"]}
    stage = {"data": [data], "dev": data, "batch_size": 5, "epochs": 40, "learning_rate": 1e-3, **changes}
    return {"kind": "multi_vector", "output": "out", "model": {"base": str(base), "dense": 16, "dropout": 0.0}, "stage": [stage]}


def test_scores_are_those_of_sentence_transformers() -> None:
    similarity = pytest.importorskip("sentence_transformers.util.similarity", reason="the authority is not installed")
    generator = torch.Generator().manual_seed(1)
    queries, texts = (torch.nn.functional.normalize(torch.randn(3, 6, 8, generator=generator), dim=-1) for _ in range(2))
    everything = torch.ones(3, 6, dtype=torch.bool)
    expected = similarity.maxsim(list(queries), list(texts), length_normalize=True)
    torch.testing.assert_close(score_maxsim(queries, everything, texts, everything), expected)


def test_the_loss_is_that_of_the_tokens_which_a_model_gives(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder).eval()
    objective = make_objective("maxsim", {"scale": 7, "dims": [8]}, dimension=encoder.dimension)
    objective.attach(encoder, [])
    asked, there = ["a cat", "dog"], ["winter was", "the snow", "in coffee", "river"]
    columns = [encoder.tokens(asked), encoder.tokens(there[:2]), encoder.tokens(there[2:])]
    found = float(objective(objective.encode(encoder, columns), None).detach())
    tokens = [encode_tokens(encoder, texts) for texts in (asked, there)]
    cut = [[rows[:, :8] for rows in each] for each in tokens]
    losses = [float(torch.nn.functional.cross_entropy(torch.tensor(7 * score_tokens(*each)), torch.arange(2))) for each in (tokens, cut)]
    assert found == pytest.approx(np.mean(losses), abs=1e-4)


def test_a_recipe_improves_search_and_its_folder_loads(tiny_bert_folder: Path, pairs: Path) -> None:
    values = make_values(tiny_bert_folder, settings={"dims": [8]}, objective="maxsim")
    result = train(make_recipe(values, folder=pairs.parent))
    first, last = (result.log.evaluations[place].scores for place in (0, -1))
    assert result.metric == "ndcg@10"
    assert last["ndcg@10"] >= first["ndcg@10"] + 0.15
    model = MultiVectorEncoder.load(pairs.parent / "out")
    assert model.dimension == 16
    asked, texts = list(WORDS), [f"the {text} was" for text in WORDS.values()]
    scores = model.similarity(model.encode_query(asked), model.encode_document(texts))
    assert float((scores.argmax(axis=1) == np.arange(len(asked))).mean()) >= 0.8
    card = (pairs.parent / "out" / "README.md").read_text(encoding="utf-8")
    assert "MultiVectorEncoder.load" in card
    assert "every token" in card


def test_the_folder_is_sentence_transformers_own(tiny_bert_folder: Path, pairs: Path) -> None:
    theirs = pytest.importorskip("sentence_transformers", reason="the authority is not installed")
    values = make_values(tiny_bert_folder, steps=2)
    del values["model"]["dense"]
    train(make_recipe(values, folder=pairs.parent))
    model, other = MultiVectorEncoder.load(pairs.parent / "out"), theirs.MultiVectorEncoder(str(pairs.parent / "out"), device="cpu")
    ours, expected = model.encode_document(["the snow was"])[0], np.asarray(other.encode_document(["the snow was"])[0])
    assert model.dimension == DIMENSION
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_a_teachers_scores_are_followed_and_a_margin_is_refused(tiny_bert_folder: Path, pairs: Path) -> None:
    taught = {"path": "pairs.tsv", "texts": ["question", "answer", "wrong"], "scores": ["good", "bad"]}
    values = make_values(tiny_bert_folder, data=[taught], steps=30, settings={"batch_weight": 0.5})
    del values["stage"][0]["dev"]
    result = train(make_recipe(values, folder=pairs.parent))
    assert "teacher's scores" in " ".join(result.messages)
    losses = [step.loss for step in result.log.steps]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    margin = {**taught, "scores": ["good"]}
    with pytest.raises(InputError, match="one for each"):
        train(make_recipe(make_values(tiny_bert_folder, data=[margin], dev=None) | {"output": "odd"}, folder=pairs.parent))


def test_what_has_no_meaning_over_tokens_is_refused(tiny_bert_folder: Path, pairs: Path) -> None:
    values = make_values(tiny_bert_folder)
    with pytest.raises(UsageError, match="pooling has no meaning for a multi-vector model"):
        make_recipe(values | {"model": {**values["model"], "pooling": "mean"}}, folder=pairs.parent)
    with pytest.raises(UsageError, match="keep_head is for sentence encoders"):
        make_recipe(make_values(tiny_bert_folder, keep_head=True), folder=pairs.parent)
    with pytest.raises(UsageError, match="a token's vector has 16"):
        train(make_recipe(make_values(tiny_bert_folder, objective="maxsim", settings={"dims": [32]}), folder=pairs.parent))
    labelled = {"path": "pairs.tsv", "texts": ["question", "answer"], "label": "good", "label_range": [1, 3]}
    with pytest.raises(InputError, match="questions and the texts that answer them"):
        train(make_recipe(make_values(tiny_bert_folder, dev=labelled), folder=pairs.parent))
