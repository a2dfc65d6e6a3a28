"""The public names of `munjang`, and of the rooms that people import from, with signatures and docstrings."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import munjang
from website.reference.markdown import documented, fenced
from website.reference.signatures import field_notes, options_of, signature, type_text

MORE = {
    "munjang.train": ("train", "load"),
    "munjang.train.adapt.run": ("adapt_model",),
    "munjang.train.distill.run": ("run_distillation",),
    "munjang.train.ablate": ("run_ablation",),
    "munjang.analyze.topics.assign": ("compute_distribution",),
    "munjang.bulk.output": ("open_output",),
    "munjang.text.readers": ("read_rows",),
}
"""Names outside of `munjang` itself that the pages of the documentation use."""


def page() -> str:
    """Return the page of the Python interface."""
    parts = [
        "# Python\n",
        "`import munjang` takes almost no time: names are loaded when first used, and only `munjang.train` loads torch.\n",
        "## munjang\n",
    ]
    parts += [_described(name, getattr(munjang, name)) for name in munjang.__all__ if not name.startswith("__")]
    for module, names in MORE.items():
        parts.append(f"## {module}\n")
        parts += [_described(name, getattr(import_module(module), name)) for name in names]
    return "\n".join(parts)


def _described(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return "\n".join((f"### {name}\n", fenced(signature(name, thing), "text"), documented(thing) + _options(thing)))
    if issubclass(thing, Exception | Warning):
        return "\n".join((f"### {name}\n", documented(thing)))
    parts = [f"### {name}\n", documented(thing)]
    if is_dataclass(thing):
        parts.append(_fields(thing))
    parts += [_member(name, word, value) for word, value in vars(thing).items() if not word.startswith("_")]
    return "\n".join(part for part in parts if part)


def _fields(thing: type) -> str:
    notes = field_notes(thing)
    options = options_of(thing)
    rows = []
    for field in fields(thing):
        option = options.get(field.name)
        note = " ".join(filter(None, (option and option.option.help, notes.get(field.name))))
        rows.append(f"- `{field.name}: {field.type if option is None else type_text(option.type)}`" + (f": {note}" if note else ""))
    return "\n".join(rows) + "\n"


def _options(function: Any) -> str:
    """Return what a function's options mean, as they are declared."""
    options = options_of(function)
    rows = [f"- `{name}`: {each.option.help}" for name, each in options.items()]
    return "\n" + "\n".join(rows) + "\n" if rows else ""


def _member(owner: str, name: str, value: Any) -> str:
    if isinstance(value, property) or type(value).__name__ == "cached_property":
        getter = value.fget if isinstance(value, property) else value.func
        assert getter is not None
        kind = inspect.get_annotations(getter)["return"]
        return f"**`{owner}.{name}`**: `{kind}`. {documented(value)}"
    if isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        bound = not isinstance(value, staticmethod)
        return "\n".join(
            (f"#### {owner}.{name}\n", fenced(signature(name, function, bound=bound), "text"), documented(function) + _options(function))
        )
    return ""
