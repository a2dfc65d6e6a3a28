"""The multi-vector model's `Task`: an encoder whose modules behind the transformer stand over every token, and are a projection.

In: a recipe of `kind = "multi_vector"`, whose `dense` is the dimension of a token's vector. Out: a folder of sentence-transformers 6's
MultiVectorEncoder, which `munjang.MultiVectorEncoder` runs without torch. The mean of a text's projected tokens is its vector for a
library's first stage. A dev file of questions, texts that answer them and further texts is searched by MaxSim: every question among all
texts of the file.

Shapes: Q questions, N texts, T tokens, W width, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import DenseModule, NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.multi_vector import MultiVectorFolder
from munjang.engine.weights import SINGLE
from munjang.errors import InputError
from munjang.evaluate.retrieval import score_run
from munjang.models.save import write_multi_vector
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message, WordTable
from munjang.text.batching import plan_batches
from munjang.train.build import build_encoder
from munjang.train.dev import Evaluation, Role
from munjang.train.encoder import Dense, Normalize, TrainableEncoder
from munjang.train.examples import DataShape, DataSource, Example, ExampleSet, read_examples
from munjang.train.load_folder import quiet_transformers
from munjang.train.objectives.registry import ObjectiveChoice
from munjang.train.recipe import Recipe, StageRecipe
from munjang.train.report import PAIRS, Spread
from munjang.train.sentence_task import prepare_stage
from munjang.train.stage import Stage
from munjang.types import Vectors
from munjang.vectors.maxsim import TokenCodes, fit_codebook, maxsim

DIMENSION = 128
"""Of a token's vector, where the recipe does not say."""
CUT = 10
"""The place down to which a dev file's answers count."""


@dataclass
class MultiVectorTask:
    """Trains an encoder of tokens."""

    model: TrainableEncoder
    marker_file = "modules.json"
    labels = ()
    pooling = ""

    @classmethod
    def build(cls, recipe: Recipe, *, keep: Path) -> MultiVectorTask:
        """Make the encoder that a recipe starts from, with a projection that keeps cosines as well as so few dimensions can."""
        bare = replace(recipe, model=replace(recipe.model, dense=None, normalize=False), kind="sentence")
        encoder = build_encoder(bare, keep=keep)
        torch.manual_seed(recipe.seed)
        width = int(encoder.base.config.hidden_size)
        projection = Dense(width, recipe.model.dense or DIMENSION, bias=False, activation="identity")
        nn.init.orthogonal_(projection.linear.weight)
        encoder.tail = nn.Sequential(projection, Normalize())
        encoder.modes = ("mean",)
        return cls(encoder)

    @property
    def max_length(self) -> int:
        """At how many tokens a text is cut."""
        return self.model.text.max_length

    def prepare(self, recipe: StageRecipe, *, number: int, seed: int, show: Callable[[str], None]) -> Stage:  # noqa: ARG002
        """Read, tokenise and plan one stage."""
        return prepare_stage(recipe, self.model, number=number, seed=seed, choose=choose_maxsim)

    def read_dev(self, source: DataSource, role: Role, stage: Stage) -> Callable[[], Evaluation]:
        """Read a dev or test file, to be searched by MaxSim."""
        return partial(score_search, read_search(source, role, seed=stage.seed), self.model)

    def measure_spread(self, data: ExampleSet, *, seed: int) -> Spread:
        """Return the MaxSim of a sample of rows."""
        return measure_token_spread(self.model, data.examples, seed=seed)

    def list_facts(self) -> list[tuple[WordTable, object]]:
        """Return the dimension of a token's vector."""
        return [(TrainingWord.TOKEN_DIMENSION, f"{self.model.dimension:,}")]

    def save(self, target: Path, last: Stage) -> None:  # noqa: ARG002
        """Write a folder that sentence-transformers' MultiVectorEncoder and ours load."""
        save_multi_vector_encoder(self.model, target)


def choose_maxsim(shape: DataShape) -> ObjectiveChoice:
    """Return the objective for data of this shape, where a recipe names none."""
    if shape.label_kind == "margins":
        return ObjectiveChoice("maxsim_scores", Message(TrainingWord.CHOSEN_MAXSIM_SCORES))
    return ObjectiveChoice("maxsim", Message(TrainingWord.CHOSEN_MAXSIM))


def encode_tokens(encoder: TrainableEncoder, texts: Sequence[str]) -> list[Vectors]:
    """Return the token vectors of each text, dropout off."""
    was_training = encoder.training
    encoder.eval()
    ids = encoder.tokens(texts)
    found: list[Vectors] = [np.zeros((0, encoder.dimension), np.float32)] * len(ids)
    with torch.no_grad():
        for batch in plan_batches([len(each) for each in ids]):
            hidden_TW, packed = encoder.hidden([ids[number] for number in batch])
            parts = encoder.tail(hidden_TW).float().cpu().split(packed.lengths_N.tolist())
            for number, place in zip(batch, packed.order_N.tolist(), strict=True):
                found[number] = parts[place].numpy()
    encoder.train(was_training)
    return found


def score_tokens(questions: Sequence[Vectors], texts: Sequence[Vectors]) -> Vectors:
    """Return the mean MaxSim of each question with each text, (Q, N)."""
    book = fit_codebook(np.concatenate(texts), "float32")
    codes = TokenCodes.join([book.quantize(each) for each in texts], book)
    return np.stack([maxsim(each, codes, book) for each in questions])


@dataclass(frozen=True)
class SearchSet:
    """Questions, all texts of a file, and which of these answer each question."""

    questions: tuple[str, ...]
    texts: tuple[str, ...]
    judgements: dict[str, dict[str, int]]


def read_search(source: DataSource, role: Role, *, seed: int) -> SearchSet:
    """Return a dev or test file as a search task; one with labels is refused."""
    found = read_examples(source, seed=seed)
    if found.columns < 2 or found.label_kind not in (None, "margins"):
        raise InputError(
            f"{found.source}: found {found.columns} text columns and labels of kind {found.label_kind}, expected a {role} file of "
            "questions and the texts that answer them\n  name pairs, or triplets, without labels"
        )
    right: dict[str, dict[str, int]] = {}
    for row in found.examples:
        right.setdefault(row.texts[0], {})[row.texts[1]] = 1
    return SearchSet(tuple(right), tuple(dict.fromkeys(text for row in found.examples for text in row.texts[1:])), right)


def score_search(task: SearchSet, encoder: TrainableEncoder) -> Evaluation:
    """Measure how high a file's answers stand, by MaxSim."""
    score_QN = score_tokens(encode_tokens(encoder, task.questions), encode_tokens(encoder, task.texts))
    if not np.isfinite(score_QN).all():
        raise InputError(
            "the model gives token vectors that are not finite numbers\n  lower the learning rate; the last checkpoint is intact"
        )
    best_QK = np.argsort(-score_QN, axis=1, kind="stable")[:, :CUT]
    run = {
        question: {task.texts[column]: float(score_N[column]) for column in best_K}
        for question, score_N, best_K in zip(task.questions, score_QN, best_QK, strict=True)
    }
    scores = score_run(run, task.judgements, documents=len(task.texts), cuts=(CUT,), resamples=0).scores
    return Evaluation(f"ndcg@{CUT}", {name: scores[name] for name in (f"ndcg@{CUT}", f"mrr@{CUT}", f"recall@{CUT}")})


def measure_token_spread(encoder: TrainableEncoder, examples: Sequence[Example], *, seed: int) -> Spread:
    """Return the MaxSim of a sample of questions with their texts, with the last texts of their rows, and with other rows' texts."""
    random = np.random.default_rng(seed)
    chosen = [examples[index] for index in sorted(random.permutation(len(examples))[:PAIRS].tolist())]
    asked = encode_tokens(encoder, [example.texts[0] for example in chosen])
    own, last = (encode_tokens(encoder, [example.texts[place] for example in chosen]) for place in (1, -1))

    def score(texts: Sequence[Vectors]) -> tuple[float, ...]:
        return tuple(float(score_tokens([one], [other])[0, 0]) for one, other in zip(asked, texts, strict=True))

    has_negatives = len(chosen[0].texts) > 2
    return Spread(score(own), score(last) if has_negatives else (), score([*own[1:], own[0]]) if len(own) > 1 else ())


def save_multi_vector_encoder(encoder: TrainableEncoder, target: Path) -> None:
    """Write an encoder and its projection into an empty or new `target`."""
    target.mkdir(parents=True, exist_ok=True)
    encoder.train_all_rows()
    encoder.tokenizer.model_max_length = encoder.text.max_length
    with quiet_transformers():
        encoder.base.save_pretrained(target, safe_serialization=True)
        encoder.tokenizer.save_pretrained(target)
    weights = target / "projection"
    weights.mkdir()
    projection = encoder.tail[0]
    assert isinstance(projection, Dense)
    save_file({"linear.weight": projection.linear.weight.detach().contiguous().cpu()}, weights / SINGLE)
    limit = encoder.text.max_length
    base = TransformerModule(folder=target, config={}, max_length=limit, lowercase=encoder.text.lowercase)
    described = MultiVectorFolder(
        encoder=ModelFolder(path=target, kind="sentence", modules=(base, PoolingModule(modes=("mean",))), max_length=limit),
        head=(DenseModule(weights, projection.in_features, projection.out_features, False, "identity"), NormalizeModule()),
        prompts={role: text for role, text in encoder.prompts.items() if text},
        markers={},
        query_length=limit,
        document_length=limit,
        is_mean=True,
    )
    write_multi_vector(target, described)
    (weights / SINGLE).unlink()
    weights.rmdir()
