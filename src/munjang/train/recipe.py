"""A TOML recipe → a frozen dataclass that says everything about a training.

In: a file, or the mapping that TOML gives. Out: `Recipe`, with every path made relative to the recipe's own folder. An unknown key is
refused with the nearest known one; a wrong type or range is refused with its place. `differences` says how two recipes differ, to resume.
Tables that name files are `recipe_files`'s, values set from outside `override`'s.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from munjang.engine.modules import Activation, Pooling, check_pooling
from munjang.errors import InputError, UsageError, shown
from munjang.train.distill.teacher import TeacherRecipe
from munjang.train.examples import DataSource
from munjang.train.objectives.settings import read_settings, refuse_unknown, refuse_unless
from munjang.train.override import override_value
from munjang.train.recipe_files import as_plain, folder_or_name, read_source, read_teacher
from munjang.train.sampling import Mix
from munjang.train.scratch import ScratchRecipe

Kind: TypeAlias = Literal["sentence", "cross"]


@dataclass(frozen=True)
class ModelRecipe:
    """What is trained: the folder `base`, or a model from `scratch`. `dense` adds a layer to that many dimensions after pooling.

    `layers` keeps only these layers of the base, counted from 0. `prompts = false` forgets the base's prompts: the trained model has none.

    `head` is for cross-encoders: "sbert" (dense, GELU, linear) or the family's "own"; without it, the first where the family allows it.
    `extend_vocabulary` adds up to that many words that are frequent in the data and split into many pieces.
    """

    base: str | None = None
    scratch: ScratchRecipe | None = None
    pooling: Pooling | None = None
    max_length: int | None = None
    normalize: bool | None = None
    dense: int | None = None
    dense_activation: Activation = "tanh"
    layers: tuple[int, ...] | None = None
    prompts: bool = True
    dropout: float | None = None
    head: Literal["sbert", "own"] | None = None
    extend_vocabulary: int | None = None

    def __post_init__(self) -> None:
        if self.pooling is not None:
            check_pooling(self.pooling)
        refuse_unless((self.base is None) != (self.scratch is None), "model: name one of base (a folder) and scratch (sizes)")
        refuse_unless(self.max_length is None or self.max_length > 2, "model: max_length must be more than 2")
        refuse_unless(self.dropout is None or 0 <= self.dropout < 1, "model: dropout must be in 0 … 1")
        refuse_unless(self.extend_vocabulary is None or self.extend_vocabulary >= 1, "model: extend_vocabulary must be 1 or more")
        refuse_unless(self.extend_vocabulary is None or self.scratch is None, "model: a vocabulary from scratch is the data's own already")


@dataclass(frozen=True)
class StageRecipe:
    """One stage of training. Defaults are the paper's: one epoch, batches of 16, 2e-5, linear warm-up over 10 %."""

    data: tuple[DataSource, ...] = ()
    dev: DataSource | None = None
    test: DataSource | None = None
    """Measured once, at the end of the stage, with the weights that are kept."""
    teacher: TeacherRecipe | None = None
    """Whose vectors the objective "distillation" learns."""
    name: str = ""
    objective: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    epochs: int = 1
    steps: int | None = None
    """Stop after this many optimiser steps, however many epochs that is."""
    batch_size: int = 16
    mini_batch: int | None = None
    """Encode this many rows at a time with a gradient cache: a large batch in the memory of a small one."""
    accumulate: int = 1
    mix: Mix = "size"
    length_window: int | None = None
    learning_rate: float = 2e-5
    head_learning_rate: float | None = None
    embedding_learning_rate: float | None = None
    layer_decay: float = 1.0
    weight_decay: float = 0.0
    warmup: float = 0.1
    clip: float = 1.0
    freeze_embeddings: bool = False
    freeze_layers: int = 0
    evaluate_every: int | None = None
    patience: int | None = None
    """Stop after this many evaluations without a better score."""
    keep_best: bool = True

    def __post_init__(self) -> None:
        where = f"stage {self.name!r}" if self.name else "stage"
        refuse_unless(len(self.data) > 0, f"{where}: has no data, expected one [[stage.data]] or more")
        for name in ("epochs", "batch_size", "accumulate"):
            refuse_unless(getattr(self, name) >= 1, f"{where}: {name} is {getattr(self, name)}, expected 1 or more")
        for name in ("steps", "mini_batch", "evaluate_every", "patience"):
            refuse_unless(getattr(self, name) is None or getattr(self, name) >= 1, f"{where}: {name} must be 1 or more")
        refuse_unless(self.learning_rate > 0, f"{where}: learning_rate must be more than 0")
        refuse_unless(self.weight_decay >= 0, f"{where}: weight_decay is {self.weight_decay:g}, expected 0 or more")
        refuse_unless(0 < self.layer_decay <= 1, f"{where}: layer_decay is {self.layer_decay:g}, expected more than 0, at most 1")
        refuse_unless(0 <= self.warmup <= 1, f"{where}: warmup is {self.warmup:g}, expected a share in 0 … 1")
        refuse_unless(self.patience is None or self.dev is not None, f"{where}: patience needs a dev file")


@dataclass(frozen=True, kw_only=True)
class TopKeys:
    """The keys of a recipe beside its tables."""

    output: str
    kind: Kind = "sentence"
    seed: int = 42
    precision: Literal["float32", "bf16"] = "float32"
    checkpoint_every: int = 500
    language: str | None = None
    license: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe(TopKeys):
    """A whole training. `kind` is "sentence" for an encoder of sentences, "cross" for a cross-encoder."""

    model: ModelRecipe
    stages: tuple[StageRecipe, ...]

    def __post_init__(self) -> None:
        refuse_unless(len(self.stages) > 0, "the recipe has no [[stage]], expected one or more")
        refuse_unless(self.checkpoint_every >= 1, "checkpoint_every must be 1 or more")
        refuse_unless(0 <= self.seed < 2**32, f"seed is {self.seed}, expected a whole number from 0 to {2**32 - 1:,}")
        if self.kind == "cross":
            set_here = [
                name for name in ("pooling", "normalize", "dense", "layers", "extend_vocabulary") if getattr(self.model, name) is not None
            ]
            refuse_unless(not set_here, f"model: {', '.join(set_here)} has no meaning for a cross-encoder, which has no sentence vector")
            taught = any(stage.teacher for stage in self.stages)
            refuse_unless(not taught, "stage: a teacher's vectors have no meaning for a cross-encoder, which has no sentence vector")
        else:
            refuse_unless(
                self.model.head is None, 'model: head is for cross-encoders\n  write kind = "cross" above the tables to train one'
            )

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as plain values."""
        made = asdict(self)
        made["stages"] = list(made["stages"])
        if self.kind == "sentence":  # the only kind once, so that runs of that time can be resumed
            del made["kind"]
        return made


def read_recipe(path: Path | str, *, overrides: Mapping[str, object] | None = None) -> Recipe:
    """Return the recipe in a TOML file; `overrides` are dotted keys such as "seed" or "stage.0.epochs" that win over the file."""
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from None
    for key, value in (overrides or {}).items():
        override_value(values, key, value)
    return make_recipe(values, folder=path.parent, where=path.name)


def make_recipe(values: Mapping[str, Any], *, folder: Path = Path(), where: str = "recipe") -> Recipe:
    """Return the recipe that a mapping describes; paths are taken relative to `folder`."""
    top = dict(values)
    refuse_unknown(TopKeys, top, where=where, also=("model", "stage"))
    model = top.pop("model", None)
    stages = top.pop("stage", [])
    if isinstance(model, list):
        raise UsageError(f"{where}: model is a list of tables, expected one\n  write [model] instead of [[model]]")
    if not isinstance(model, Mapping):
        raise UsageError(f"{where}: the table [model] is missing")
    if not isinstance(stages, list):
        raise UsageError(f"{where}: stage is one table, expected a list of them\n  write [[stage]] instead of [stage]")
    if "output" not in top:
        raise UsageError(f"{where}: output is missing, expected the folder that the model is saved to")
    made_model = _model(model, folder, where)
    made_stages = tuple(_stage(stage, folder, f"{where}: stage {number}") for number, stage in enumerate(stages, 1))
    rest = read_settings(TopKeys, top, where=where)
    return Recipe(model=made_model, stages=made_stages, **(asdict(rest) | {"output": str(folder / rest.output)}))


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one line for each value in which two recipes differ."""
    left, right = _flat(old), _flat(new)
    keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
    return [f"{key}: was {shown(str(left.get(key)))}, is {shown(str(right.get(key)))}" for key in keys]


def _model(values: Mapping[str, Any], folder: Path, where: str) -> ModelRecipe:
    refuse_unknown(ModelRecipe, values, where=f"{where}: model")
    rest = dict(values)
    scratch = rest.pop("scratch", None)
    if scratch is not None and not isinstance(scratch, Mapping):
        raise UsageError(f"{where}: model.scratch is {shown(str(scratch))}, expected a table of sizes")
    made = read_settings(ScratchRecipe, scratch, where=f"{where}: model.scratch") if isinstance(scratch, Mapping) else None
    if made is None:
        if "base" not in rest:
            raise UsageError(f"{where}: model names neither base (a folder or a name) nor scratch (sizes), expected one of them")
        model = read_settings(ModelRecipe, rest, where=f"{where}: model")
        return replace(model, base=folder_or_name(folder, str(model.base)))
    if "base" in rest:
        raise UsageError(f"{where}: model names both base and scratch, expected one of them")
    # a placeholder satisfies the check of ModelRecipe until the sizes are in
    model = read_settings(ModelRecipe, {**rest, "base": "-"}, where=f"{where}: model")
    return replace(model, base=None, scratch=made)


def _stage(values: Any, folder: Path, where: str) -> StageRecipe:
    if not isinstance(values, Mapping):
        raise UsageError(f"{where} is {shown(str(values))}, expected a table")
    refuse_unknown(StageRecipe, values, where=where)
    rest = dict(values)
    data, dev, test, teacher = rest.pop("data", []), rest.pop("dev", None), rest.pop("test", None), rest.pop("teacher", None)
    made_teacher = None if teacher is None else read_teacher(teacher, folder, f"{where}, teacher")
    listed = [data] if isinstance(data, Mapping) else data
    if not isinstance(listed, list):
        raise UsageError(f"{where}: data is {shown(str(data))}, expected tables\n  write [[stage.data]] with a path under it")
    sources = [read_source(item, folder, f"{where}, data {number}") for number, item in enumerate(listed, 1)]
    made_dev = None if dev is None else read_source(dev, folder, f"{where}, dev")
    made_test = None if test is None else read_source(test, folder, f"{where}, test")
    if not sources:
        raise UsageError(f"{where}: has no data, expected one [[stage.data]] or more")
    made_data = tuple(as_plain(source, rest.get("objective")) for source in sources)
    plain = read_settings(_StageValues, rest, where=where)
    return StageRecipe(data=made_data, dev=made_dev, test=made_test, teacher=made_teacher, **{key: getattr(plain, key) for key in rest})


@dataclass(frozen=True)
class _StageValues(StageRecipe):
    """A stage's plain keys, typed as in StageRecipe; its data is read apart."""

    def __post_init__(self) -> None:
        """Checks wait until the data is there."""


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(values, Mapping):
        return {k: v for key, value in values.items() for k, v in _flat(value, f"{prefix}{key}.").items()}
    if isinstance(values, list | tuple) and any(isinstance(value, Mapping) for value in values):
        return {k: v for index, value in enumerate(values) for k, v in _flat(value, f"{prefix}{index}.").items()}
    return {prefix.rstrip("."): list(values) if isinstance(values, tuple) else values}
