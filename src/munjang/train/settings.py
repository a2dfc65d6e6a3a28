"""A recipe's table of settings → a frozen dataclass, nothing guessed.

In: a mapping as TOML or JSON gives it. Out: the dataclass, or a UsageError that names the key, what was found, what was expected and, for
an unknown key, the nearest known one. Ranges that a type cannot say are checked by each dataclass's `__post_init__`.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar

from munjang.errors import UsageError, quote

S = TypeVar("S")

ELSEWHERE = {
    "early_stopping_patience": "patience",
    "eval_steps": "evaluate_every",
    "gradient_accumulation_steps": "accumulate",
    "load_best_model_at_end": "keep_best",
    "loss": "objective",
    "lr": "learning_rate",
    "max_grad_norm": "clip",
    "max_seq_length": "max_length",
    "max_steps": "steps",
    "mini_batch_size": "mini_batch",
    "model_name_or_path": "base",
    "num_train_epochs": "epochs",
    "output_dir": "output",
    "per_device_train_batch_size": "batch_size",
    "pooling_mode": "pooling",
    "save_steps": "checkpoint_every",
    "train_batch_size": "batch_size",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
}
"""What sentence-transformers and transformers call a setting."""


def read_settings(kind: type[S], values: Mapping[str, object], *, where: str) -> S:
    """Return `kind` filled from `values`; lists become tuples, whole numbers are accepted where a float is meant."""
    hints = typing.get_type_hints(kind)
    refuse_unknown(kind, values, where=where)
    return kind(**{key: _convert(hints[key], value, where=f"{where}: {key}") for key, value in values.items()})


def refuse_unknown(kind: type, values: Mapping[str, object], *, where: str, also: Iterable[str] = ()) -> None:
    """Raise a UsageError for the first key that is no field of `kind` and not among `also`, with the nearest known one."""
    known = [*(field.name for field in fields(kind)), *also]
    for key, value in values.items():
        if key not in known:
            is_table = isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(item, Mapping) for item in value))
            raise UsageError(f"{where}: unknown {'table' if is_table else 'setting'} {quote(str(key))}{suggest_name(str(key), known)}")


def suggest_name(word: str, known: Iterable[str], *, elsewhere: Mapping[str, str] = ELSEWHERE) -> str:
    """Return the tail of a message that points at the closest known name, or lists them all; `elsewhere` maps other libraries' names.

    >>> suggest_name("tripplet", ["triplet", "cosent"])
    '\\n  did you mean triplet?'
    >>> suggest_name("num_train_epochs", ["epochs", "steps"])
    '\\n  did you mean epochs?'
    """
    names = sorted(known)
    close = [elsewhere[word]] if elsewhere.get(word) in names else difflib.get_close_matches(word, names, n=1)
    if close:
        return f"\n  did you mean {close[0]}?"
    return f"\n  known: {', '.join(names)}" if names else "\n  there are none to set"


def _convert(hint: Any, value: object, *, where: str) -> object:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(choice for choice in arguments if choice is not type(None)), value, where=where)
    if origin is Literal:
        if value not in arguments:
            raise UsageError(f"{where} is {quote(str(value))}, expected one of {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UsageError(f"{where} is {quote(str(value))}, expected a list")
        return tuple(_convert(arguments[0], item, where=where) for item in value)
    return _convert_plain(origin or hint, value, where=where)


def _convert_plain(hint: Any, value: object, *, where: str) -> object:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # True is an int to Python, and no user means it as one
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        name = {Mapping: "a table", str: "a text", bool: "true or false", int: "a whole number", float: "a number"}.get(hint, hint.__name__)
        raise UsageError(f"{where} is {quote(str(value))}, expected {name}")
    return value


def refuse_unless(allowed: bool, message: str) -> None:
    """Raise a UsageError with `message` unless `allowed`."""
    if not allowed:
        raise UsageError(message)
