"""A command with sub-commands, one of which may be left out: a first word that is no sub-command is a file for it."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

from typer.core import TyperGroup

from munjang.errors import UsageError, quote

HELP = ("--help", "-h")


class DefaultCommandGroup(TyperGroup):
    """Puts `default` before arguments in front of which no sub-command stands."""

    default: ClassVar[str] = "fit"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the default sub-command where none is named."""
        if args and args[0] not in self.commands and args[0] not in HELP:
            near = get_close_matches(args[0], self.commands, n=1, cutoff=0.7)
            if near and not Path(args[0]).exists():
                raise UsageError(f"{quote(args[0])} is neither a sub-command nor a file\n  did you mean {near[0]!r}?")
            args = [self.default, *args]
        return super().parse_args(ctx, args)
