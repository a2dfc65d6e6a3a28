"""A model and a domain's plain text → the model at home in that domain, and what came of it on the domain's own dev sets.

In: an `AdaptPlan`. Out: an ordinary model folder, made by the trainer from a recipe of one stage, and `Adaptation`: each dev set's scores
before and after, measured on the two folders the same way. The numbers stand in `adaptation.json` beside the model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from munjang.errors import InputError
from munjang.models.registry import resolve
from munjang.train.dev import DevSet, Scores, read_dev
from munjang.train.durable import write_file
from munjang.train.load_folder import EncoderOptions, load_encoder
from munjang.train.plans import AdaptPlan
from munjang.train.progress import Progress
from munjang.train.recipe import TextMethod
from munjang.train.save_and_report import TrainResult
from munjang.train.save_and_report import run as train_recipe
from munjang.wording import Language, brief_repr

FACTS = "adaptation.json"


@brief_repr
@dataclass(frozen=True)
class DevChange:
    """One dev set's scores before and after."""

    file: str
    metric: str
    before: Scores
    after: Scores


@brief_repr
@dataclass(frozen=True)
class Adaptation:
    """What an adaptation made."""

    result: TrainResult
    method: TextMethod
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
