"""The classes that a person meets at the Python prompt: what the public functions and methods return, and what those hold in turn."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from website.reference.python_names import MORE

import munjang

ROOMS_OF_FUNCTIONS = (
    "munjang.analyze.dedupe",
    "munjang.bulk.estimate",
    "munjang.bulk.pair_blocks",
    "munjang.evaluate.calibrate",
    "munjang.evaluate.clustering",
    "munjang.evaluate.compare",
    "munjang.data.read",
    "munjang.data.retrieval",
    "munjang.evaluate.lint",
    "munjang.evaluate.nli",
    "munjang.evaluate.pairs",
    "munjang.evaluate.rerank",
    "munjang.evaluate.retrieval",
    "munjang.evaluate.sts",
    "munjang.evaluate.translation",
    "munjang.evaluate.triplets",
    "munjang.models.expected_similarity",
    "munjang.models.inspect",
    "munjang.models.registry",
)
"""Modules whose public functions people may call, beside those that the reference names."""


def public_classes() -> list[type]:
    """Return every class of ours that can be reached from the public names, in the order of their names."""
    waiting: list[Any] = [getattr(munjang, name) for name in munjang.__all__ if name != "__version__"]
    waiting += [getattr(import_module(module), name) for module, names in MORE.items() for name in names]
    for module in map(import_module, ROOMS_OF_FUNCTIONS):
        functions = inspect.getmembers(module, inspect.isfunction)
        waiting += [made for name, made in functions if made.__module__ == module.__name__ and not name.startswith("_")]
    found: set[type] = set()
    while waiting:
        each = waiting.pop()
        if inspect.isclass(each):
            if each in found:
                continue
            found.add(each)
        waiting += [reached for reached in _reached(each) if reached not in found]
    return sorted(found, key=lambda cls: (cls.__module__, cls.__name__))


def _reached(value: Any) -> Iterator[type]:
    """Yield the classes that a function returns, or that a class holds and its methods return."""
    if not inspect.isclass(value):
        yield from _named(value.__annotations__.get("return", ""), value.__module__)
        return
    for cls in value.__mro__[:-1]:
        if not cls.__module__.startswith("munjang."):
            continue
        for annotation in vars(cls).get("__annotations__", {}).values():
            yield from _named(annotation, cls.__module__)
        for name, member in vars(cls).items():
            inner = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(inner):
                yield from _named(inner.__annotations__.get("return", ""), cls.__module__)


def _named(annotation: Any, module: str) -> Iterator[type]:
    names = _names_of(import_module(module))
    for word in re.findall(r"[A-Za-z_]\w*", str(annotation)):
        made = names.get(word)
        if inspect.isclass(made) and made.__module__.startswith("munjang.") and not made.__name__.startswith("_"):
            yield made


def _names_of(module: ModuleType) -> dict[str, Any]:
    """Return a module's names, those imported for type checkers only included, but no imports inside functions, which may need extras."""
    names = dict(vars(module))
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    for node in [*body, *(inner for each in body if isinstance(each, ast.If) for inner in each.body)]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("munjang."):
            home = import_module(str(node.module))
            names |= {alias.asname or alias.name: getattr(home, alias.name) for alias in node.names if hasattr(home, alias.name)}
    return names
