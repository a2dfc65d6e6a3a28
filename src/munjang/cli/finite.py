"""A command's numbers → refused where they are nan or infinite: a range lets nan pass, and nan compares with nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer

Check = Callable[[Any, Any, Any], Any]


def refuse_nan(command: Any) -> None:
    """Make a command and its sub-commands refuse numbers that are none, whichever option they are given to."""
    for parameter in command.params:
        parameter.callback = _checked(parameter.callback)
    for inner in getattr(command, "commands", {}).values():
        refuse_nan(inner)


def _checked(then: Check | None) -> Check:
    def check(context: Any, parameter: Any, value: Any) -> Any:
        for number in value if isinstance(value, tuple | list) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise typer.BadParameter(f"{number} is not a finite number.", ctx=context, param=parameter)
        return value if then is None else then(context, parameter, value)

    return check
