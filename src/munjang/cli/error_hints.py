"""What to try next after a wrong call: the command that was meant, the file that was meant, where options and quotes go.

In: what was typed, or the error. Out: lines to put under the message, each with two spaces before it; empty where nothing can be said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from munjang.errors import FolderError, quote

OTHER_NAMES = {
    "benchmark": "bench",
    "convert": "export",
    "create": "add",
    "dedupe": "pairs",
    "delete": "remove",
    "download": "models pull",
    "duplicates": "pairs",
    "embed": "encode",
    "embeddings": "encode",
    "eval": "evaluate",
    "find": "search",
    "finetune": "train",
    "fine-tune": "train",
    "help": "--help",
    "install": "doctor",
    "list": "models list",
    "plot": "map",
    "pull": "models pull",
    "quantize": "compress",
    "query": "search",
    "recommend": "search LIBRARY --like ID",
    "server": "serve",
    "similarity": "similar",
    "start": "serve",
    "test": "evaluate",
    "tokenize": "inspect",
    "vectorize": "encode",
    "version": "--version",
}
"""What other tools call it."""

LISTED_FILES = 5
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_OTHER_PROGRAM = re.compile(r"\b(?:munjang [a-z]|pip |dask |accelerate )")
"""From here on a line speaks of another command, whose options are its own."""


def after_unknown_command(name: str, known: Sequence[str]) -> str:
    """Return the command that was probably meant; without one, where they are all listed.

    >>> after_unknown_command("embed", ["encode", "remove"])
    "\\n  did you mean 'encode'?"
    """
    meant = OTHER_NAMES.get(name.lower())
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    if meant is None and not near:
        return f"\n  commands: {', '.join(known)}\n  munjang --help describes them"
    return f"\n  did you mean {meant or near[0]!r}?"


def after_missing_file(error: BaseException) -> str:
    """Return files beside a file that was not found, the nearest name first; empty for other errors."""
    cause = error if isinstance(error, FileNotFoundError) else error.__cause__ or error.__context__
    if not isinstance(cause, FileNotFoundError) or not cause.filename or isinstance(error, FolderError) or "\n" in str(error):
        return ""
    path = Path(str(cause.filename))
    if not path.parent.is_dir():
        return f"\n  there is no folder {quote(str(path.parent))}"
    names = _files_of(path.parent)
    near = get_close_matches(path.name, names, n=1, cutoff=0.75)
    alike = [name for name in names if Path(name).suffix == path.suffix]
    if near:
        return f"\n  did you mean {quote(str(path.with_name(near[0])))}?"
    if alike:
        return f"\n  there are: {', '.join(map(quote, alike[:LISTED_FILES]))}{' …' if len(alike) > LISTED_FILES else ''}"
    return f"\n  check the path; you are in {quote(str(Path.cwd()))}"


def drop_false_hints(message: str, own: frozenset[str], is_ours: Callable[[str], bool]) -> str:
    """Return a message without advice to use an option that the command which runs does not have.

    What several commands share may say an option of some of them. `is_ours` tells an option of another command from one that is none.

    >>> drop_false_hints("a.csv: no score\\n  name it (--column a=NAME), or --skip-bad", frozenset(("--json",)), lambda _: True)
    'a.csv: no score\\n  name it'
    """

    def is_false(text: str) -> bool:
        other = _OTHER_PROGRAM.search(text)
        named = _OPTION.findall(text if other is None else text[: other.start()])
        return any(option not in own and is_ours(option) for option in named)

    if not is_false(message.replace("\n", " ")) and not any(map(is_false, message.split("\n"))):
        return message
    first, *hints = (_without_parentheses(line, is_false) for line in message.split("\n"))
    kept = (_without_clauses(line, is_false) for line in hints)
    return "\n".join((first, *(line for line in kept if line.strip())))


def _without_parentheses(line: str, is_false: Callable[[str], bool]) -> str:
    return re.sub(r"\s*\([^()]*\)", lambda found: "" if is_false(found.group()) else found.group(), line)


def _without_clauses(line: str, is_false: Callable[[str], bool]) -> str:
    if not is_false(line):
        return line
    clauses = [clause for clause in re.split(r"(?:, or |; then |; |, )", line.strip()) if not is_false(clause)]
    return "  " + ", or ".join(clauses) if clauses else ""


def _files_of(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    except OSError:  # a folder that may not be looked into
        return []


def after_usage_error(message: str, path: str) -> str:
    """Return what a call that cannot be parsed probably lacks, and where the call is explained."""
    hints = [f"{path} --help explains the call"]
    if "unexpected extra argument" in message:
        hints.insert(0, "put a text of several words in quotes")
    if "No such option" in message and path == "munjang":
        hints.insert(0, "put a command's options after its name, such as: munjang models --json")
    return "".join(f"\n  {hint}" for hint in hints)
