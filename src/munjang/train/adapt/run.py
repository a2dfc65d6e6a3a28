"""A model and a domain's plain text → the model at home in that domain, and what came of it on the domain's own dev sets.

In: an `AdaptPlan`. Out: an ordinary model folder, made by the trainer from a recipe of one stage, and `Adaptation`: each dev set's scores
before and after, measured on the two folders the same way. The numbers stand in `adaptation.json` beside the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from munjang.errors import InputError
from munjang.models.registry import resolve
from munjang.train.dev import DevSet, Scores, read_dev
from munjang.train.durable import write_file
from munjang.train.examples import DataSource
from munjang.train.load_folder import EncoderOptions, load_encoder
from munjang.train.progress import Progress
from munjang.train.recipe import ModelRecipe, Recipe, make_stage
from munjang.train.save_and_report import TrainResult
from munjang.train.save_and_report import run as train_recipe
from munjang.types import Device
from munjang.wording import Language

Method: TypeAlias = Literal["mlm", "tsdae", "simcse"]

LEARNING_RATES: dict[Method, float] = {"mlm": 5e-5, "tsdae": 3e-5, "simcse": 1e-5}
BATCH_SIZES: dict[Method, int] = {"mlm": 16, "tsdae": 8, "simcse": 64}
"""Where the plan says none; those of the papers, but for mlm's, which is fine-tuning's usual one."""
DROPOUTS: dict[Method, float] = {"simcse": 0.1}
"""Where the plan says none and the model's own will not do: two passes of simcse differ by dropout alone."""
FACTS = "adaptation.json"


@dataclass(frozen=True)
class AdaptPlan:
    """What to learn from which text, and where the model goes. The first of `dev` decides which weights are kept, all are measured."""

    files: tuple[DataSource, ...]
    output: str
    model: ModelRecipe
    method: Method = "tsdae"
    stage: Mapping[str, object] = field(default_factory=dict)
    """Keys of a recipe's stage, such as settings, epochs and steps; batch size and learning rate are the method's own without."""
    dev: tuple[DataSource, ...] = ()
    seed: int = 42
    checkpoint_every: int = 500
    device: Device = "auto"

    def make_recipe(self) -> Recipe:
        """Return the recipe of one stage that does it."""
        named = {"name": self.method, "objective": self.method, "dev": self.dev[0] if self.dev else None}
        stage = make_stage(
            self.stage, data=self.files, batch_size=BATCH_SIZES[self.method], learning_rate=LEARNING_RATES[self.method], **named
        )
        model = replace(self.model, dropout=DROPOUTS.get(self.method)) if self.model.dropout is None else self.model
        return Recipe(
            output=self.output,
            model=model,
            stages=(stage,),
            seed=self.seed,
            checkpoint_every=self.checkpoint_every,
            device=self.device,
        )


@dataclass(frozen=True)
class DevChange:
    """One dev set's scores before and after."""

    file: str
    metric: str
    before: Scores
    after: Scores


@dataclass(frozen=True)
class Adaptation:
    """What an adaptation made."""

    result: TrainResult
    method: Method
    measured: tuple[DevChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result for machines."""
        made = self.result.to_json()
        kept = {name: made[name] for name in ("output", "steps", "loss", "messages", "warning", "diagnoses")}
        return {**kept, "method": self.method, "measured": [asdict(entry) for entry in self.measured]}

    def write(self, path: Path) -> None:
        """Write it as JSON, the folder by its name alone."""
        content = json.dumps(self.to_json() | {"output": self.result.output.name}, ensure_ascii=False, indent=1)
        path.write_text(content + "\n", encoding="utf-8")


def adapt_model(plan: AdaptPlan, *, resume: bool = False, progress: Progress | None = None, language: Language = "en") -> Adaptation:
    """Train by the plan and measure before and after; bad data is refused before the first step. `language` is the report's."""
    if not plan.files:
        raise InputError("no file of text to learn from")
    recipe = plan.make_recipe()
    devs = [read_dev(source, seed=plan.seed) for source in plan.dev]
    before = _score_all(devs, resolve(recipe.model.base).path, EncoderOptions(pooling=plan.model.pooling))
    result = train_recipe(recipe, resume=resume, progress=progress, language=language)
    if not result.is_first:
        return Adaptation(result, plan.method, ())
    after = _score_all(devs, result.output)
    measured = tuple(DevChange(dev.name, metric, old, new) for dev, (metric, old), (_, new) in zip(devs, before, after, strict=True))
    made = Adaptation(result, plan.method, measured)
    write_file(result.output / FACTS, made.write)
    return made


def _score_all(devs: Sequence[DevSet], folder: Path, options: EncoderOptions | None = None) -> list[tuple[str, Scores]]:
    if not devs:
        return []
    encoder = load_encoder(folder, options)
    return [(found.metric, found.scores) for found in (dev.score(encoder) for dev in devs)]
