"""One value of a recipe set from outside, by a dotted key such as "seed" or "stage.0.epochs"."""

from __future__ import annotations

from typing import Any

from munjang.errors import UsageError, shown


def override_value(values: dict[str, Any], key: str, value: object) -> None:
    """Set the value at `key` in the tables `values`, which are changed; tables that are missing are made."""
    *steps, last = key.split(".")
    at: Any = values
    for step in steps:
        if isinstance(at, list):
            if not step.isdigit() or int(step) >= len(at):
                raise UsageError(f"override {shown(key)}: there is no {shown(step)} among {len(at)} tables")
            at = at[int(step)]
        else:
            at = at.setdefault(step, {})
        if not isinstance(at, dict | list):
            raise UsageError(f"override {shown(key)}: {shown(step)} is {shown(str(at))}, expected a table")
    if not isinstance(at, dict):
        raise UsageError(f"override {shown(key)}: expected the number of a table and one of its keys, such as stage.0.epochs")
    at[last] = value
