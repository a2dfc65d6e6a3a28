"""The group of all commands: each is imported when it is called, and none takes a number that is nan or infinite.

A command with sub-commands may have one that need not be named (`DefaultCommandGroup`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from munjang import __version__
from munjang.cli.commands import COMMANDS, find, help_page, load_command
from munjang.cli.error_hints import after_unknown_command
from munjang.errors import UsageError, quote

Check = Callable[[Any, Any, Any], Any]

ParseError: type[Exception] = typer.BadParameter.__mro__[1]
"""The parser's own usage error. Typer does not export it, and where it lives depends on typer's version."""


class LazyGroup(TyperGroup):
    """Knows every command by name and imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names in the table's order."""
        return [entry.name for entry in COMMANDS]

    listing = False
    """While a shell completes the names of commands, none is imported for it."""

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the names that begin so, from the table."""
        self.listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        entry = find(cmd_name)
        if self.listing and entry is not None:
            return TyperCommand(cmd_name, help=entry.help)
        if entry is None and ctx.resilient_parsing:  # a shell asks for completions of half a line
            return None
        if entry is None:
            raise UsageError(f"there is no command {quote(cmd_name)}{after_unknown_command(cmd_name, self.list_commands(ctx))}")
        command = load_command(entry)
        command.name = cmd_name
        refuse_nan(command)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        """Write the help page from the table."""
        formatter.write(help_page())


app = typer.Typer(cls=LazyGroup, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        print(f"munjang {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    _asked: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Do nothing but take --version: `help_page` says what is printed for --help."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def refuse_nan(command: Any) -> None:
    """Make a command and its sub-commands refuse numbers that are none, whichever option they are given to."""
    for parameter in command.params:
        parameter.callback = _refuse_nan(parameter.callback)
    for inner in getattr(command, "commands", {}).values():
        refuse_nan(inner)


def _refuse_nan(then: Check | None) -> Check:
    def check(context: Any, parameter: Any, value: Any) -> Any:
        for number in value if isinstance(value, tuple | list) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise typer.BadParameter(f"{number} is not a finite number.", ctx=context, param=parameter)
        return value if then is None else then(context, parameter, value)

    return check


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
