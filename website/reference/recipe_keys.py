"""Every key of a recipe and every setting of an objective, from the dataclasses that read them."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from munjang.options import declared_options
from munjang.train.examples import DataSource, TeacherRecipe
from munjang.train.objectives.registry import OBJECTIVES, SCORE_LOSSES
from munjang.train.recipe import ModelRecipe, Recipe, ScratchRecipe, StageRecipe
from munjang.train.sentence_task import TEXT_OBJECTIVES
from website.reference.markdown import code, documented, table
from website.reference.signatures import field_notes

_SINGULAR = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_PLURAL = {str: "texts", int: "whole numbers", float: "numbers"}
TABLES: tuple[tuple[str, type, set[str]], ...] = (
    ("Above the tables", Recipe, {"model", "stages"}),
    ("[model]", ModelRecipe, set()),
    ("[model.scratch]", ScratchRecipe, set()),
    ("[[stage]]", StageRecipe, set()),
    ("[stage.teacher]", TeacherRecipe, set()),
    ("[[stage.data]], [stage.dev], [stage.test]", DataSource, set()),
)
"""Heading, the dataclass behind it, and its fields that are tables of their own."""


def page() -> str:
    """Return the page of recipes."""
    parts = [
        "# Recipes\n",
        "Keys of a TOML recipe, their types and defaults. An unknown key is an error that names the nearest one. What they do:\n"
        "[training](../train.md), [distillation](../distill.md), [adaptation](../adapt.md).\n",
    ]
    for heading, kind, apart in TABLES:
        parts += [f"## {heading}\n", documented(kind), _keys(kind, apart)]
    for heading, known in (
        ("Objectives of sentence encoders", OBJECTIVES),
        ("Objectives over plain text", TEXT_OBJECTIVES),
        ("Losses of cross-encoders", SCORE_LOSSES),
    ):
        parts.append(f"## {heading}\n")
        parts += [_objective(name, kind) for name, kind in known.items()]
    return "\n".join(parts)


def _objective(name: str, kind: Any) -> str:
    settings = kind if is_dataclass(kind) else kind.settings_type
    return "\n".join((f"### {name}\n", documented(kind), _keys(settings, set()) if fields(settings) else "No settings.\n"))


def _keys(kind: Any, apart: set[str]) -> str:
    told = {name: each.option.help for name, each in declared_options(kind).items()}
    notes, hints = told | field_notes(kind), get_type_hints(kind)
    shown = [each for each in fields(kind) if each.name not in apart]
    rows = [(code(each.name), _type(hints[each.name]), _default(each)) for each in shown]
    if not any(each.name in notes for each in shown):
        return table(("key", "type", "default"), rows)
    noted = [(*row, notes.get(each.name, "")) for row, each in zip(rows, shown, strict=True)]
    return table(("key", "type", "default", "note"), noted)


def _type(hint: Any) -> str:
    """Return a type as someone who writes TOML would say it.

    >>> _type(tuple[int, ...]), _type(Literal["a", "b"]), _type(float | None)
    ('list of whole numbers', '`"a"`, `"b"`', 'number')
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(code(json.dumps(each)) for each in inner)
    if origin in (Union, UnionType):
        return " or ".join(_type(each) for each in inner if each is not type(None))
    if origin is tuple:
        return (
            f"list of {_PLURAL.get(inner[0]) or _type(inner[0])}" if inner[-1] is Ellipsis else f"list of {len(inner)} {_PLURAL[inner[0]]}"
        )
    return _SINGULAR.get(hint, "table")


def _default(field: Field[Any]) -> str:
    if (field.default is MISSING and field.default_factory is MISSING) or field.type == "tuple[DataSource, ...]":
        return "required"  # a stage without data is refused when it is made
    if field.default in (None, "", ()) or field.default is MISSING:
        return "–"
    if isinstance(field.default, float):
        return code(f"{field.default:g}")
    return code(json.dumps(field.default, ensure_ascii=False))
