"""A trained cross-encoder → a folder that transformers, sentence-transformers and the engine load, and what the report shows of its scores.

In: the model. Out: config.json with the labels' names and the activation, the weights with their head, the tokenizer. Card, report and the
move into place are `finish.py`'s.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from munjang.engine.activations import TORCH_NAMES
from munjang.engine.write_folder import write_json
from munjang.evaluate.nli import labels_of
from munjang.models.save import SAVED_AS, save_pair_tokenizer
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.diagnoses import class_answers, score_answers
from munjang.train.examples import Example, ExampleSet
from munjang.train.load_folder import quiet_transformers
from munjang.train.log import Answers
from munjang.train.report import PAIRS, Spread, middle_of
from munjang.types import Vectors


def save_cross_encoder(model: TrainableCrossEncoder, target: Path) -> None:
    """Write the model, its head included, into an empty or new `target`."""
    target.mkdir(parents=True, exist_ok=True)
    model.train_all_rows()
    inner = model.model
    inner.config.id2label = dict(enumerate(model.labels))
    inner.config.label2id = {label: number for number, label in enumerate(model.labels)}
    with quiet_transformers():
        inner.save_pretrained(target, safe_serialization=True)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    settings = {"activation_fn": TORCH_NAMES[model.activation], "version": SAVED_AS}
    write_json(target / "config.json", {**config, "sentence_transformers": settings})
    save_pair_tokenizer(model.tokenizer, config, target, max_length=model.max_length)


def measure_score_spread(model: TrainableCrossEncoder, data: ExampleSet, *, seed: int) -> Spread:
    """Return the scores of a sample of rows, and of first texts with texts of other rows; of a classifier, the highest probability."""
    random, examples = np.random.default_rng(seed), data.examples
    chosen = [examples[index] for index in sorted(random.permutation(len(examples))[:PAIRS].tolist())]
    own = _predict(model, [(example.texts[0], example.texts[1]) for example in chosen])
    others = _predict(model, [(example.texts[0], example.texts[2]) for example in chosen if len(example.texts) > 2])
    # every row's second text with the first text of the row before: a partner by chance
    by_chance = [(chosen[row - 1].texts[0], chosen[row].texts[1]) for row in range(len(chosen))] if len(chosen) > 1 else []
    middle = middle_of(chosen)
    high = np.array([model.dimension > 1 or example.label is None or example.label >= middle for example in chosen])
    heights = _heights(own)
    unlike = [*heights[~high], *_heights(others)]
    answers = _answers(model, data, chosen, own, others)
    chance_scores = _heights(_predict(model, by_chance))
    return Spread(_floats(heights[high]), _floats(unlike), _floats(chance_scores), measure="score", answers=answers)


def _answers(model: TrainableCrossEncoder, data: ExampleSet, chosen: Sequence[Example], own: Vectors, others: Vectors) -> Answers | None:
    """Return how much the answers to labelled rows differ, or those to the two documents of a query; None where neither is there."""
    if model.dimension > 1:
        gold = [data.classes[int(example.label or 0)] for example in chosen]
        return class_answers(labels_of(own, model.labels), gold)
    if all(example.label is not None for example in chosen):
        return score_answers(own, [example.label or 0.0 for example in chosen], kind="score")
    return score_answers([*own, *others], [*[1.0] * len(own), *[0.0] * len(others)], kind="score") if len(others) else None


def _predict(model: TrainableCrossEncoder, pairs: Sequence[tuple[str, str]]) -> Vectors:
    return model.predict(pairs) if pairs else np.zeros(0, np.float32)


def _heights(scores: Vectors) -> Vectors:
    """Return one number a pair: its score, or the probability of its most likely class."""
    if scores.ndim == 1:
        return scores
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    highest: Vectors = (raised / raised.sum(axis=1, keepdims=True)).max(axis=1)
    return highest


def _floats(values: Sequence[float] | Vectors) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
