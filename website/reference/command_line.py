"""Every command's --help as a page: what is printed here is what the program prints."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout

from munjang.cli.commands import COMMANDS, GROUPS, CommandEntry, load_command
from munjang.cli.main import run
from website.reference.markdown import fenced, table

WIDTH = "100"


def page() -> str:
    """Return the page of the command line."""
    parts = [
        "# Commands\n",
        "Every command has `--json` for scripts; `-` stands for standard input; results go to standard output, notes to standard error.\n"
        "Exit codes, with examples: [the command line](../cli.md).\n",
        table(
            ("command", "what it does", "group"),
            [(f"[`{entry.name}`](#munjang-{entry.name})", entry.help, title) for title, entries in GROUPS.items() for entry in entries],
        ),
    ]
    for entry in COMMANDS:
        parts.append(f"## munjang {entry.name}\n")
        parts += [fenced(_help(words)) for words in _calls(entry)]
    return "\n".join(parts)


def _calls(entry: CommandEntry) -> Iterator[tuple[str, ...]]:
    yield (entry.name,)
    yield from ((entry.name, each) for each in getattr(load_command(entry), "commands", {}))


def _help(words: tuple[str, ...]) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            code = run([*words, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    assert code == 0, words
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
