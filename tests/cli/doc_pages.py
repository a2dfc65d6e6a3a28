"""A page of the documentation as something to run: the files it shows and the lines it tells to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = re.compile(r"^`(\S+)`:\n\n```\w+\n(.*?)```", flags=re.DOTALL | re.MULTILINE)
LINES = re.compile(r"```sh\n(.*?)```", flags=re.DOTALL)


def write_shown_files(page: Path, folder: Path) -> None:
    """Write every file that a page shows under its name."""
    for name, content in FILE.findall(page.read_text(encoding="utf-8")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def run_lines(page: Path, munjang: Callable[..., Any]) -> int:
    """Run every line of a page's sh blocks, in order, and return how many; `# exit 1` at a line's end says which exit code it has."""
    lines = [line for block in LINES.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    for line in lines:
        wanted = int(line.partition("# exit ")[2][:1] or 0)
        program, *arguments = shlex.split(line, comments=True)
        assert program == "munjang"
        outcome = munjang(*arguments)
        assert outcome.code == wanted, f"{line}: {outcome.err}"
        assert outcome.out or wanted, line
    return len(lines)
