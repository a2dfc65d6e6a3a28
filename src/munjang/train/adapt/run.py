"""A model and a domain's plain text → the model adapted to that domain, and its scores on the domain's own dev sets.

Out: an ordinary model folder, made by the trainer from a recipe of one stage, and `Adaptation`: each dev set's scores before and after,
measured on the two folders the same way. The numbers stand in `adaptation.json` beside the model. torch is imported when the work begins,
so that the command can show its options without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from munjang.errors import InputError
from munjang.models.registry import resolve
from munjang.options import Option, check_options, default_of
from munjang.train import name_missing_extra
from munjang.train.durable import write_text
from munjang.train.examples import DataSource
from munjang.train.progress import Progress
from munjang.train.recipe import ModelRecipe, Recipe, TextMethod, TopKeys, make_stage
from munjang.types import DEFAULT_DEVICE, Device
from munjang.wording import Language, brief_repr

if TYPE_CHECKING:
    from munjang.train.dev import DevSet, Scores
    from munjang.train.load_folder import EncoderOptions
    from munjang.train.save_and_report import TrainResult

FACTS = "adaptation.json"
STAGES: dict[TextMethod, dict[str, Any]] = {
    "mlm": {"batch_size": 16, "learning_rate": 5e-5},
    "tsdae": {"batch_size": 8, "learning_rate": 3e-5},
    "simcse": {"batch_size": 64, "learning_rate": 1e-5},
}
"""Where nothing else is asked for; those of the papers, but for mlm's, which is fine-tuning's usual one."""
DROPOUTS: dict[TextMethod, float] = {"simcse": 0.1}
"""Where none is asked for and the model's own will not do: two passes of simcse differ by dropout alone."""


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


@name_missing_extra()
def adapt_model(
    files: Sequence[DataSource],
    output: str | Path,
    *,
    model: ModelRecipe,
    method: Annotated[
        TextMethod,
        Option("mlm: predict hidden words; tsdae: reconstruct texts from their vectors; simcse: contrast each text with the others."),
    ] = "tsdae",
    stage: Mapping[str, object] | None = None,
    dev: Sequence[DataSource] = (),
    seed: int = default_of(TopKeys, "seed"),
    checkpoint_every: int = default_of(TopKeys, "checkpoint_every"),
    device: Device = DEFAULT_DEVICE,
    resume: bool = False,
    progress: Progress | None = None,
    language: Language = "en",
) -> Adaptation:
    """Adapt a model to a domain, from plain text alone, and measure it before and after; bad data is refused before the first step.

    `stage` has keys of a recipe's stage, such as settings, epochs and steps; batch size and learning rate are the method's own without. The
    first of `dev` decides which weights are kept, all are measured. `language` is the report's.
    """
    from munjang.train.dev import read_dev
    from munjang.train.load_folder import EncoderOptions
    from munjang.train.save_and_report import run

    check_options(adapt_model, locals())
    if not files:
        raise InputError("no file of text to learn from")
    own = {"name": method, "objective": method, "dev": dev[0] if dev else None, **STAGES[method]}
    recipe = Recipe(
        output=str(output),
        model=replace(model, dropout=DROPOUTS.get(method)) if model.dropout is None else model,
        stages=(make_stage(stage or {}, data=tuple(files), **own),),
        seed=seed,
        checkpoint_every=checkpoint_every,
        device=device,
    )
    devs = [read_dev(source, seed=seed) for source in dev]
    before = _score_all(devs, resolve(model.base).path, EncoderOptions(pooling=model.pooling))
    result = run(recipe, resume=resume, progress=progress, language=language)
    if not result.is_first:
        return Adaptation(result, method, ())
    after = _score_all(devs, result.output)
    measured = tuple(DevChange(dev.name, metric, old, new) for dev, (metric, old), (_, new) in zip(devs, before, after, strict=True))
    made = Adaptation(result, method, measured)
    facts = made.to_json() | {"output": result.output.name}  # the folder by its name alone
    write_text(result.output / FACTS, json.dumps(facts, ensure_ascii=False, indent=1) + "\n")
    return made


def _score_all(devs: Sequence[DevSet], folder: Path, options: EncoderOptions | None = None) -> list[tuple[str, Scores]]:
    from munjang.train.load_folder import load_encoder

    if not devs:
        return []
    encoder = load_encoder(folder, options)
    return [(found.metric, found.scores) for found in (dev.score(encoder) for dev in devs)]
