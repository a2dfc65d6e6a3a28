"""A TOML recipe → a frozen dataclass that says everything about a training.

In: a file, or the mapping that TOML gives. Out: `Recipe`, with every path made relative to the recipe's own folder. An unknown key is
refused with the nearest known one; a wrong type or range is refused with its place. `list_differences` says how two recipes differ, to
resume. Teachers and data sources are tables of their own; `make_stage` makes a stage for those who write no recipe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from munjang.engine.modules import Activation, check_pooling
from munjang.errors import InputError, UsageError, quote
from munjang.options import Option, Seed, TrainDeviceOption, check_options
from munjang.train.examples import VECTOR_FILES, DataSource, TeacherRecipe
from munjang.train.settings import read_settings, refuse_unknown, refuse_unless
from munjang.types import DEFAULT_DEVICE, Pooling
from munjang.wording import brief_repr

Kind: TypeAlias = Literal["sentence", "cross", "multi_vector"]
Mix: TypeAlias = Literal["size", "even"]
"""How the batches of several data sets are mixed."""
TextMethod: TypeAlias = Literal["mlm", "tsdae", "simcse"]
"""Objectives that learn from plain text."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@brief_repr
@dataclass(frozen=True)
class ScratchRecipe:
    """The size of a model trained from scratch."""

    tokenizer: Literal["wordpiece", "unigram"] = "wordpiece"
    vocabulary: int = 8000
    lowercase: bool = True
    layers: int = 4
    width: int = 256
    heads: int = 4
    inner: int = 1024
    positions: int = 512

    def __post_init__(self) -> None:
        refuse_unless(self.width % self.heads == 0, f"model.scratch: {self.heads} heads do not divide a width of {self.width}")
        refuse_unless(min(self.layers, self.width, self.heads, self.inner) > 0, "model.scratch: sizes must be 1 or more")
        refuse_unless(self.vocabulary > len(SPECIAL), f"model.scratch: a vocabulary of {self.vocabulary} leaves no room for pieces")


@brief_repr
@dataclass(frozen=True)
class ModelRecipe:
    """What is trained: the folder `base`, or a model from `scratch`. `dense` adds a layer to that many dimensions after pooling;
    of a multi-vector model it is the dimension of a token's vector (128 by default).

    `layers` keeps only these layers of the base, counted from 0. `prompts = false` drops the base's prompts: the trained model has none.

    `head` is for cross-encoders: "sbert" (dense, GELU, linear) or the family's "own"; by default the first, if the family allows it.
    `extend_vocabulary` adds up to that many words that are frequent in the data and split into many tokens.
    """

    base: str | None = None
    scratch: ScratchRecipe | None = None
    pooling: Pooling | None = None
    max_length: Annotated[int | None, Option("Truncate texts to this many tokens; the model keeps this limit.", min=3)] = None
    normalize: bool | None = None
    dense: int | None = None
    dense_activation: Activation = "tanh"
    layers: Annotated[tuple[int, ...] | None, Option("Keep only these layers, from 0, such as 0,2,4.", commas=True)] = None
    prompts: Annotated[
        bool, Option("Keep the prompts of the base model; training does not use them.", flags=("--prompts/--no-prompts",))
    ] = True
    dropout: Annotated[float | None, Option("Dropout during training.", min=0, max=0.9)] = None
    head: Literal["sbert", "own"] | None = None
    extend_vocabulary: Annotated[int | None, Option("Add up to this many words of the domain to the vocabulary.", min=1)] = None

    def __post_init__(self) -> None:
        if self.pooling is not None:
            check_pooling(self.pooling)
        refuse_unless((self.base is None) != (self.scratch is None), "model: name one of base (a folder) and scratch (sizes)")
        _check_bounds(self, "model")
        refuse_unless(self.extend_vocabulary is None or self.scratch is None, "model: a vocabulary from scratch is the data's own already")


@brief_repr
@dataclass(frozen=True)
class StageRecipe:
    """One stage of training. Defaults are the paper's: one epoch, batches of 16, 2e-5, linear warm-up over 10 %."""

    data: tuple[DataSource, ...] = ()
    dev: DataSource | None = None
    test: DataSource | None = None
    """Measured once, at the end of the stage, with the kept weights."""
    teacher: TeacherRecipe | None = None
    """Whose vectors the objective "distillation" learns, from data that names no teacher of its own."""
    name: str = ""
    objective: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    epochs: Annotated[int, Option("Passes through the data.", min=1)] = 1
    steps: Annotated[int | None, Option("Stop after this many steps, regardless of epochs.", min=1)] = None
    """Stop after this many optimiser steps, regardless of epochs."""
    batch_size: Annotated[int, Option("Rows per batch.", min=1)] = 16
    mini_batch: Annotated[int | None, Option("Rows to encode at a time.", min=1)] = None
    """Encode this many rows at a time with a gradient cache: a large batch in the memory of a small one."""
    accumulate: Annotated[int, Option("Batches per step.", min=1)] = 1
    mix: Mix = "size"
    length_window: Annotated[int | None, Option("Sort this many batches together by length, such as 20: somewhat faster.", min=0)] = None
    learning_rate: Annotated[float, Option("The peak learning rate, after the warm-up.")] = 2e-5
    head_learning_rate: float | None = None
    embedding_learning_rate: float | None = None
    layer_decay: float = 1.0
    weight_decay: Annotated[float, Option("The weight decay of AdamW.", min=0)] = 0.0
    warmup: Annotated[float, Option("The fraction of steps in which the learning rate rises.", min=0, max=1)] = 0.1
    clip: float = 1.0
    freeze_embeddings: bool = False
    freeze_layers: int = 0
    evaluate_every: Annotated[int | None, Option("Measure on the first dev file every this many steps.", min=1)] = None
    patience: Annotated[int | None, Option("Stop after this many measurements without improvement.", min=1)] = None
    """Stop after this many evaluations without improvement."""
    keep_best: bool = True
    keep_head: bool = False
    """Keep the head of the objective "classification" beside the encoder, in the folder `pair_classifier`; last stage only."""

    def __post_init__(self) -> None:
        where = f"stage {self.name!r}" if self.name else "stage"
        refuse_unless(len(self.data) > 0, f"{where}: has no data, expected one [[stage.data]] or more")
        _check_bounds(self, where)
        refuse_unless(self.learning_rate > 0, f"{where}: learning_rate must be more than 0")
        refuse_unless(0 < self.layer_decay <= 1, f"{where}: layer_decay is {self.layer_decay:g}, expected more than 0, at most 1")
        refuse_unless(self.patience is None or self.dev is not None, f"{where}: patience needs a dev file")


@dataclass(frozen=True, kw_only=True)
class TopKeys:
    """The keys of a recipe beside its tables."""

    output: str
    kind: Kind = "sentence"
    seed: Seed = 42
    precision: Literal["float32", "bf16"] = "float32"
    device: TrainDeviceOption = DEFAULT_DEVICE
    checkpoint_every: Annotated[int, Option("Steps between checkpoints.", min=1)] = 500
    language: str | None = None
    license: str | None = None


@brief_repr
@dataclass(frozen=True, kw_only=True)
class Recipe(TopKeys):
    """A whole training. `kind` is "sentence" for a sentence encoder, "cross" for a cross-encoder, "multi_vector" for late interaction."""

    model: ModelRecipe
    stages: tuple[StageRecipe, ...]

    def __post_init__(self) -> None:
        refuse_unless(len(self.stages) > 0, "the recipe has no [[stage]], expected one or more")
        check_options(TopKeys, vars(self))
        refuse_unless(
            not any(stage.keep_head for stage in self.stages[:-1]),
            "stage: keep_head is for the last stage, since later ones change the encoder that a head reads",
        )
        if self.kind == "multi_vector":
            set_here = [name for name in ("pooling", "normalize", "head") if getattr(self.model, name) is not None]
            refuse_unless(not set_here, f"model: {', '.join(set_here)} has no meaning for a multi-vector model, whose tokens are compared")
            refuse_unless(not self.stages[-1].keep_head, "stage: keep_head is for sentence encoders; a multi-vector model keeps no head")
        elif self.kind == "cross":
            refuse_unless(not self.stages[-1].keep_head, "stage: keep_head is for sentence encoders; a cross-encoder keeps its head always")
            set_here = [
                name for name in ("pooling", "normalize", "dense", "layers", "extend_vocabulary") if getattr(self.model, name) is not None
            ]
            refuse_unless(not set_here, f"model: {', '.join(set_here)} has no meaning for a cross-encoder, which has no sentence vector")
            taught = any(stage.teacher or any(source.teacher for source in stage.data) for stage in self.stages)
            refuse_unless(not taught, "stage: a teacher's vectors have no meaning for a cross-encoder, which has no sentence vector")
        else:
            refuse_unless(
                self.model.head is None, 'model: head is for cross-encoders\n  write kind = "cross" above the tables to train one'
            )

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as plain values."""
        made = asdict(self)
        made["stages"] = list(made["stages"])
        # what older versions did not know is left out where it says nothing, so that runs of their time can be resumed
        if self.kind == "sentence":
            del made["kind"]
        for stage in made["stages"]:
            if not stage["keep_head"]:
                del stage["keep_head"]
            for source in [*stage["data"], stage["dev"], stage["test"]]:
                if source is not None and source["teacher"] is None:
                    del source["teacher"]
        if self.device == "auto":  # likewise
            del made["device"]
        return made


def _check_bounds(table: ModelRecipe | StageRecipe, where: str) -> None:
    try:
        check_options(type(table), vars(table))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


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
        _override_value(values, key, value)
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
    made_model = _read_model(model, folder, where)
    made_stages = tuple(_read_stage(stage, folder, f"{where}: stage {number}") for number, stage in enumerate(stages, 1))
    rest = read_settings(TopKeys, top, where=where)
    return Recipe(model=made_model, stages=made_stages, **(asdict(rest) | {"output": str(folder / rest.output)}))


def make_stage(values: Mapping[str, object], **fixed: Any) -> StageRecipe:
    """Return a stage with these keys of a recipe's [[stage]], which win over `fixed`; None leaves a key out, an unknown one is refused."""
    refuse_unknown(StageRecipe, values, where="stage")
    return StageRecipe(**{**fixed, **{key: value for key, value in values.items() if value is not None}})


def list_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one line for each value in which two recipes differ."""
    left, right = _flatten(old), _flatten(new)
    keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
    return [f"{key}: was {quote(str(left.get(key)))}, is {quote(str(right.get(key)))}" for key in keys]


def _read_model(values: Mapping[str, Any], folder: Path, where: str) -> ModelRecipe:
    refuse_unknown(ModelRecipe, values, where=f"{where}: model")
    rest = {key: value for key, value in values.items() if value is not None}
    if not isinstance(rest.get("scratch", {}), Mapping):
        raise UsageError(f"{where}: model.scratch is {quote(str(rest['scratch']))}, expected a table of sizes")
    if ("base" in rest) == ("scratch" in rest):
        how = "both base (a folder or a name) and" if "base" in rest else "neither base (a folder or a name) nor"
        raise UsageError(f"{where}: model names {how} scratch (sizes), expected one of them")
    if "scratch" in rest:
        rest["scratch"] = read_settings(ScratchRecipe, rest["scratch"], where=f"{where}: model.scratch")
    elif isinstance(rest["base"], str):
        rest["base"] = _find_beside(folder, rest["base"])
    return read_settings(ModelRecipe, rest, where=f"{where}: model")


def _read_stage(values: Any, folder: Path, where: str) -> StageRecipe:
    if not isinstance(values, Mapping):
        raise UsageError(f"{where} is {quote(str(values))}, expected a table")
    refuse_unknown(StageRecipe, values, where=where)
    rest = {key: value for key, value in values.items() if value is not None}
    listed = [rest["data"]] if isinstance(rest.get("data"), Mapping) else rest.get("data", [])
    if not isinstance(listed, list):
        raise UsageError(f"{where}: data is {quote(str(listed))}, expected tables\n  write [[stage.data]] with a path under it")
    if not listed:
        raise UsageError(f"{where}: has no data, expected one [[stage.data]] or more")
    sources = [_read_source(item, folder, f"{where}, data {number}") for number, item in enumerate(listed, 1)]
    rest["data"] = [_as_plain(source, rest.get("objective")) for source in sources]
    rest |= {role: _read_source(rest[role], folder, f"{where}, {role}") for role in ("dev", "test") if role in rest}
    if "teacher" in rest:
        rest["teacher"] = _read_teacher(rest["teacher"], folder, f"{where}, teacher")
    return read_settings(StageRecipe, rest, where=where)


def _flatten(values: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(values, Mapping):
        return {k: v for key, value in values.items() for k, v in _flatten(value, f"{prefix}{key}.").items()}
    if isinstance(values, list | tuple) and any(isinstance(value, Mapping) for value in values):
        return {k: v for index, value in enumerate(values) for k, v in _flatten(value, f"{prefix}{index}.").items()}
    return {prefix.rstrip("."): list(values) if isinstance(values, tuple) else values}


def _read_source(values: Any, folder: Path, where: str) -> DataSource:
    """Return the data file that a table names."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{where} is {quote(str(values))}, expected a table that names a file as path")
    refuse_unknown(DataSource, values, where=where)
    if not isinstance(values.get("path"), str):
        raise UsageError(f"{where}: path is missing, expected a data file")
    rest = dict(values)
    if "teacher" in rest:
        rest["teacher"] = _read_teacher(rest["teacher"], folder, f"{where}, teacher")
    source = read_settings(DataSource, rest, where=where)
    refuse_unless(source.limit is None or source.limit >= 1, f"{where}: limit must be 1 or more")
    return replace(source, path=str(folder / source.path))


def _as_plain(source: DataSource, objective: object) -> DataSource:
    """Read a file as plain text where its objective learns from nothing else."""
    is_plain = source.kind is None and (source.objective or objective) in get_args(TextMethod)
    return replace(source, kind="plain") if is_plain else source


def _read_teacher(values: Any, folder: Path, where: str) -> TeacherRecipe:
    """Return the teacher in a table, or in the bare name of its model."""
    table = {"model": values} if isinstance(values, str) else values
    if isinstance(table, Mapping):
        refuse_unknown(TeacherRecipe, table, where=where)
    if not isinstance(table, Mapping) or not isinstance(table.get("model"), str):
        raise UsageError(f"{where}: model is missing, expected the teacher's folder or name")
    made = read_settings(TeacherRecipe, table, where=where)
    cache = None if made.cache is None else str(folder / made.cache)
    return replace(made, model=_find_beside(folder, made.model), cache=cache)


def _find_beside(folder: Path, written: str) -> str:
    """Return the path of a folder, or of a file of vectors, beside the recipe, or else the name, which the registry may know."""
    beside = folder / written
    return str(beside) if beside.is_dir() or written.endswith(VECTOR_FILES) else written


def _override_value(values: dict[str, Any], key: str, value: object) -> None:
    """Set the value at `key` in the tables `values`, which are changed; tables that are missing are made."""
    *steps, last = key.split(".")
    at: Any = values
    for step in steps:
        if isinstance(at, list):
            if not step.isdigit() or int(step) >= len(at):
                raise UsageError(f"override {quote(key)}: there is no {quote(step)} among {len(at)} tables")
            at = at[int(step)]
        else:
            at = at.setdefault(step, {})
        if not isinstance(at, dict | list):
            raise UsageError(f"override {quote(key)}: {quote(step)} is {quote(str(at))}, expected a table")
    if not isinstance(at, dict):
        raise UsageError(f"override {quote(key)}: expected the number of a table and one of its keys, such as stage.0.epochs")
    at[last] = value
