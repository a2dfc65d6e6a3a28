"""A function's signature as it would be written, and the notes beside a dataclass's fields."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from munjang.options import Declared, declared_options

LONG = 110


def signature(name: str, function: Callable[..., Any], *, bound: bool = False) -> str:
    """Return `name(…) -> …`, one parameter a line where it is long; `bound` leaves out self and cls."""
    found, options = inspect.signature(function), options_of(function)
    parameters = list(found.parameters.values())
    if bound and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    parameters = [each.replace(annotation=type_text(options[each.name].type)) if each.name in options else each for each in parameters]
    words = _parameters(parameters)
    result = "" if found.return_annotation is inspect.Signature.empty else f" -> {_annotation(found.return_annotation)}"
    short = f"{name}({', '.join(words)}){result}"
    return short if len(short) <= LONG else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){result}"


def options_of(verb: Callable[..., Any]) -> Mapping[str, Declared]:
    """Return the options that a function or dataclass declares; one whose types are there for checkers alone declares none."""
    try:
        return declared_options(verb)
    except NameError:
        return {}


def type_text(kind: Any) -> str:
    """Return a type as it would be written.

    >>> type_text(int), type_text(str | None), type_text(Literal["a", "b"])
    ('int', 'str | None', "Literal['a', 'b']")
    """
    if isinstance(kind, type) and not get_args(kind):
        return kind.__name__
    if get_origin(kind) in (Union, UnionType):
        return " | ".join("None" if each is type(None) else type_text(each) for each in get_args(kind))
    return re.sub(r"[a-z_]+(?:\.[a-z_]+)*\.([A-Z])", r"\1", str(kind))


def field_notes(kind: type) -> dict[str, str]:
    """Return the string that stands below a field in a class, for each field that has one."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    notes: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(after, ast.Expr):
            value = after.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                notes[before.target.id] = inspect.cleandoc(value.value)
    return notes


def _parameters(parameters: list[inspect.Parameter]) -> list[str]:
    words: list[str] = []
    for number, each in enumerate(parameters):
        if each.kind is each.KEYWORD_ONLY and not any(p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in parameters[:number]):
            words.append("*")
        words.append(_parameter(each))
        last = number + 1 == len(parameters) or parameters[number + 1].kind is not each.POSITIONAL_ONLY
        if each.kind is each.POSITIONAL_ONLY and last:
            words.append("/")
    return words


def _parameter(each: inspect.Parameter) -> str:
    stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
    annotation = "" if each.annotation is each.empty else f": {_annotation(each.annotation)}"
    equals = " = " if annotation else "="
    return f"{stars}{each.name}{annotation}" + ("" if each.default is each.empty else f"{equals}{_default(each.default)}")


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _default(value: Any) -> str:
    plain = isinstance(value, (str, int, float, bool, tuple, type(None)))
    return repr(value) if plain else f"{type(value).__name__}(…)" if not callable(value) else getattr(value, "__name__", "…")
