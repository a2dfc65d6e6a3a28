"""How a data set is named on the command line: the shared options, and the file that an argument leads to.

Comes in: strings from the command line. Goes out: `ReadOptions` for `data`, a path on disk, and notes on standard error on
how the file was understood. Reading itself is `data`'.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from munjang.cli.show import note, one_line
from munjang.errors import InputError, UsageError, quote
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.data.read import ReadOptions
    from munjang.data.rows import Dataset, RetrievalTask, TextPair

AnyRows = TypeVar("AnyRows", bound="Dataset[Any]")

FileArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help='A data file (csv, tsv, jsonl, json, parquet, also gzipped), or its folder; "-" is standard input.'
    ),
]
TranslationsArgument: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[FILE]", help="The translations, if both files have one sentence per line.")
]
LayoutOption: TypeAlias = Annotated[
    str | None, typer.Option("--layout", help="The data layout, such as korsts, klue-sts, kornli or pawsx. Default: recognised.")
]
ColumnOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="The role of a column, such as a=first; numbers from 0 if there is no header."),
]
ScaleOption: TypeAlias = Annotated[
    tuple[float, float] | None, typer.Option("--scale", metavar="LOW HIGH", help="The range of the file's scores, such as 0 5.")
]
LabelOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL=same|different", help="The meaning of a label, such as 1=same; repeat it for each label."),
]
SplitOption: TypeAlias = Annotated[str, typer.Option("--split", help="Which part of a folder: train, dev, test.")]
DEFAULT_SPLIT = "test"
SkipBadOption: TypeAlias = Annotated[bool, typer.Option("--skip-bad", help="Skip and count broken rows.")]

PositiveOption: TypeAlias = Annotated[
    str | None, typer.Option("--positive", metavar="LABEL", help="The model's label that means the same, if it has several labels.")
]

MEANINGS = {"same": "1", "1": "1", "different": "0", "0": "0"}
SHOWN_MESSAGES = 5
SUFFIXES = ("csv", "tsv", "txt", "json", "jsonl", "ndjson", "parquet")
MAGIC = ((b"PAR1", "parquet"), (b"{", "jsonl"), (b"[", "json"))
"""The first bytes of what standard input may hold; anything else is a table, whose separator the reader finds out."""


@dataclass(frozen=True)
class DataOptions:
    """How a labelled file is read: its layout or its columns, which part of a folder it is, and whether broken rows are an error."""

    layout: LayoutOption = None
    column: ColumnOption = None
    split: SplitOption = DEFAULT_SPLIT
    skip_bad: SkipBadOption = False

    def to_read_options(self, *, scale: tuple[float, float] | None = None, labels: Sequence[str] | None = None) -> ReadOptions:
        """Return what a reader is told."""
        return read_options(layout=self.layout, columns=self.column, scale=scale, labels=labels, skip_bad=self.skip_bad)

    def read(
        self,
        file: str,
        reader: Callable[[Path, ReadOptions], AnyRows],
        *,
        scale: tuple[float, float] | None = None,
        labels: Sequence[str] | None = None,
    ) -> AnyRows:
        """Return the rows of a file, and tell how they were read."""
        with locate_file(file, split=self.split) as path:
            data = reader(path, self.to_read_options(scale=scale, labels=labels))
        tell(data)
        return data


def read_options(
    *,
    layout: str | None = None,
    columns: Sequence[str] | None = None,
    scale: tuple[float, float] | None = None,
    labels: Sequence[str] | None = None,
    skip_bad: bool = False,
) -> ReadOptions:
    """Return what the caller said about a file, checked."""
    from munjang.data.read import ReadOptions

    if layout is not None and columns:
        raise UsageError("--layout and --column together, expected one of them\n  a layout names its own columns")
    named = _assignments(columns or (), "--column", "a=sentence1")
    by_role: dict[str, str | int] = {role: int(column) if column.isdecimal() else column for role, column in named.items()}
    return ReadOptions(layout=layout, columns=by_role or None, scale=scale, labels=_meanings(labels), skip_bad=skip_bad)


def read_translations(file: str, other: str | None, options: DataOptions) -> Dataset[TextPair]:
    """Return pairs of sentences of one file, or of two files with a sentence a line, and tell how they were read."""
    from munjang.data.read import read_text_pairs
    from munjang.data.unlabelled import read_parallel

    if other is None:
        return options.read(file, read_text_pairs)
    options.to_read_options()  # refuses a layout beside columns
    data = read_parallel(file, other, skip_bad=options.skip_bad)
    tell(data)
    return data


@contextmanager
def locate_file(file: str, *, split: str = DEFAULT_SPLIT) -> Iterator[Path]:
    """Yield the path of a data file: the argument itself, one file of a folder, or standard input, kept on disk meanwhile."""
    if file != "-":
        path = Path(file)
        yield _in_folder(path, split) if path.is_dir() else path
        return
    with tempfile.TemporaryDirectory(prefix="munjang-") as folder:
        spool = Path(folder) / "stdin"
        with spool.open("wb") as handle:
            shutil.copyfileobj(sys.stdin.buffer, handle)
        yield spool.rename(spool.with_suffix("." + _suffix_of(spool)))


def tell(data: Dataset[Any] | RetrievalTask) -> None:
    """Say on standard error how a data set was understood, what was left out and what is odd about it."""
    from munjang.data.rows import Dataset

    if isinstance(data, Dataset):
        scale = "" if data.scale is None else "; scores {:g} to {:g}".format(*data.scale)
        note(one_line(f"{data.source}: {count(len(data), 'row')}; {data.detected}{scale}"))
        if data.skipped:
            note(f"{count(len(data.skipped), 'row')} left out")
        for message in data.skipped[:SHOWN_MESSAGES]:
            note(f"  {one_line(message)}")
    else:
        note(
            f"{one_line(data.source)}: {data.layout}, {count(len(data.corpus), 'document')}, {count(len(data.judgements), 'judged query')}"
        )
    for remark in data.notes:
        note(one_line(remark))


def facts_of(data: Dataset[Any]) -> dict[str, Any]:
    """Return what a report says about its data."""
    return {"file": data.source, "layout": data.layout, "skipped": len(data.skipped)}


def _in_folder(folder: Path, split: str) -> Path:
    """The one data file of a folder whose name holds the split's."""
    from munjang.data.files import get_file_kind

    files = sorted(path for path in folder.iterdir() if path.is_file() and get_file_kind(path) in SUFFIXES)
    fitting = [path for path in files if split in path.name]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(quote(path.name) for path in (fitting or files)[:10]) or "no data file"
    raise InputError(
        f"{folder}: {count(len(fitting), 'data file')} named after {quote(split)}, expected one\n  there is {there}; name the file itself"
    )


def _suffix_of(path: Path) -> str:
    from munjang.data.files import read_first_bytes

    start = read_first_bytes(path, 64).removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((suffix for magic, suffix in MAGIC if start.startswith(magic)), "tsv")


def _meanings(labels: Sequence[str] | None) -> Mapping[str, str] | None:
    if not labels:
        return None
    named = _assignments(labels, "--label", "0=different")
    wrong = next((meaning for meaning in named.values() if meaning not in MEANINGS), None)
    if wrong is not None:
        raise UsageError(f"--label: a label means {quote(wrong, 30)}, expected same or different")
    return {label: MEANINGS[meaning] for label, meaning in named.items()}


def _assignments(items: Sequence[str], option: str, example: str) -> dict[str, str]:
    made: dict[str, str] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not (sign and name.strip() and value.strip()):
            raise UsageError(f"{option} {quote(item, 30)}, expected for example {option} {example}")
        made[name.strip()] = value.strip()
    return made
