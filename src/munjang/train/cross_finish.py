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
from munjang.models.save import SAVED_AS, save_pair_tokenizer
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.examples import Example
from munjang.train.load_folder import quiet_transformers
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


def measure_score_spread(model: TrainableCrossEncoder, examples: Sequence[Example], *, seed: int) -> Spread:
    """Return the scores of a sample of rows, and of first texts with texts of other rows; of a classifier, the highest probability."""
    random = np.random.default_rng(seed)
    chosen = [examples[index] for index in sorted(random.permutation(len(examples))[:PAIRS].tolist())]
    own = _scores(model, [(example.texts[0], example.texts[1]) for example in chosen])
    others = [(example.texts[0], example.texts[2]) for example in chosen if len(example.texts) > 2]
    # every row's second text with the first text of the row before: a partner by chance
    by_chance = [(chosen[row - 1].texts[0], chosen[row].texts[1]) for row in range(len(chosen))] if len(chosen) > 1 else []
    middle = middle_of(chosen)
    high = [model.dimension > 1 or example.label is None or example.label >= middle for example in chosen]
    unlike = [*own[~np.array(high)], *_scores(model, others)]
    return Spread(_floats(own[np.array(high)]), _floats(unlike), _floats(_scores(model, by_chance)), measure="score")


def _scores(model: TrainableCrossEncoder, pairs: Sequence[tuple[str, str]]) -> Vectors:
    if not pairs:
        return np.zeros(0, np.float32)
    scores = model.predict(pairs)
    if scores.ndim == 1:
        return scores
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    highest: Vectors = (raised / raised.sum(axis=1, keepdims=True)).max(axis=1)
    return highest


def _floats(values: Sequence[float] | Vectors) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
