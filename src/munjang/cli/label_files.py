"""Files of `munjang classify`: labels and labelled rows to read, and an output that goes on where it was killed.

A large file is labelled block by block. Beside the output stand a file that grows (`.NAME.labels`) and one that says how far it is and what
it was made of. The same command finds them, cuts what was half written and goes on; only a whole output gets its name.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.atomic import atomic_write, sync, translate_disk_errors
from munjang.cli.options import Columns
from munjang.cli.row_files import TextRow, no_text, read_text_rows
from munjang.errors import DamagedFile, InputError, TextError, UsageError, quote
from munjang.file_lock import hold_lock, lock_files
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.analyze.classify.labels import Label

BLOCK = 4_096
"""Rows that are labelled at once."""
LABEL_COLUMNS = ("label", "labels", "category", "class", "topic", "intent", "kind", "type", "라벨", "레이블", "분류", "범주", "주제")
_NAME_COLUMNS = ("name", "label", "라벨", "레이블", "이름", "text")
_DESCRIPTION_COLUMNS = ("description", "설명")
_WORD_COLUMNS = ("words", "keywords", "단어")
_LEAVE_OUT = "leave such rows out with --skip-unlabelled"


def read_labels(given: str) -> list[Label]:
    """Return labels: names parted by commas, or a file with a name, and maybe a description and words, in each row."""
    from munjang.analyze.classify.labels import Label
    from munjang.text.readers import read_rows

    if not _is_file(given):
        names = [name.strip() for name in given.split(",") if name.strip()]
        if len(names) == 1 and Path(given).suffix.lower() in (".csv", ".tsv", ".jsonl", ".json", ".txt"):
            raise UsageError(f"--labels {quote(given)}: there is no such file")
        return [Label(name) for name in names]
    made = []
    for row in read_rows(given):
        name = _cell_of(row.values, _NAME_COLUMNS)
        if name is None:
            columns = ", ".join(quote(each) for each in row.values)
            raise InputError(f"{row.where}: no label's name, expected a column called name; found {columns}")
        words = _cell_of(row.values, _WORD_COLUMNS) or ""
        listed = words if isinstance(words, list) else str(words).replace(";", ",").split(",")
        described = _cell_of(row.values, _DESCRIPTION_COLUMNS) or ""
        made.append(Label(str(name).strip(), str(described).strip(), tuple(str(word).strip() for word in listed if str(word).strip())))
    return made


def read_labelled_rows(
    file: str, columns: Columns, *, label_column: str | None, multi: bool, separator: str, skip_unlabelled: bool
) -> tuple[list[TextRow], list[Any], str]:
    """Return rows, their labels, and the column that holds these; a row without text or label is an error that names it, or is left out."""
    from munjang.text.validate_texts import is_missing

    rows = read_text_rows(file, columns)
    column = label_column or _guess_label_column(rows, file)
    kept, labels = [], []
    for row in rows:
        if column not in row.values:
            from munjang.text.records import describe_missing_column

            raise describe_missing_column(column, row.values, where=f"{file} row {row.number}")
        value = row.values[column]
        if not row.text.strip():
            if not skip_unlabelled:
                raise InputError(f"{file} row {row.number}: the text is empty, expected an example\n  {_LEAVE_OUT}")
            continue
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            if not skip_unlabelled and not multi:
                raise InputError(f"{file} row {row.number}: {quote(column)} is empty, expected a label\n  {_LEAVE_OUT}")
            if not multi or skip_unlabelled:
                continue
            value = []
        kept.append(row)
        labels.append(_split(value, separator) if multi else value)
    if not kept:
        raise InputError(f"{file}: no row has a label in {quote(column)}")
    return kept, labels, column


def stream_rows(file: str, columns: Columns) -> Iterator[TextRow]:
    """Yield the rows of a file, however many there are; a text that no model takes is refused with its place."""
    from munjang.text.readers import read_rows
    from munjang.text.records import make_records
    from munjang.text.unicode import clean

    passed: list[Any] = []

    def keep() -> Iterator[Any]:
        for row in read_rows(file, format=columns.format, encoding=columns.encoding, quoting=columns.quoting):
            passed.append(row.values)
            yield row

    records = make_records(keep(), text_column=columns.text_column, id_column=columns.id_column)
    for number, record in enumerate(records, start=1):
        try:
            clean(record.text)
        except TextError as error:
            raise TextError(f"{record.where}: {error}") from None
        yield TextRow(number, record.id, record.text, passed.pop(0))


def identify_input(file: str, columns: Columns, *parts: object) -> str | None:
    """Return what an output is made of, as a hash; None for standard input, which cannot be read a second time."""
    if file == "-":
        return None
    seen = Path(file).stat()
    known = [str(Path(file).resolve()), seen.st_size, seen.st_mtime_ns, repr(columns), *map(str, parts)]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


@contextmanager
def hold_output(path: Path | None) -> Iterator[None]:
    """Be the only one who writes an output; a second command for the same file is refused."""
    if path is None or not path.parent.is_dir():
        yield
        return
    lock = path.with_name(f".{path.name}.labels.lock")
    with hold_lock(lock, name=str(path), purpose="classify"):
        yield
        for each in lock_files(lock):
            each.unlink(missing_ok=True)


class LabelledFile:
    """The output of labelling: rows appended block by block; takes its name when `finish` is called."""

    def __init__(self, path: Path, made_of: str | None) -> None:
        self.path = path
        self.made_of = made_of
        self.growing = path.with_name(f".{path.name}.labels")
        self.journal = path.with_name(f".{path.name}.labels.json")
        self.rows = 0
        self.counts: dict[str, int] = {}
        self.names: list[str] | None = None
        if path.is_dir() or not path.parent.is_dir():
            raise UsageError(f"{path}: expected the name of a file in a folder that exists")
        start = self._resume()
        with translate_disk_errors(path):
            self._handle = self.growing.open("r+b" if start else "wb")
            self._handle.truncate(start)
            self._handle.seek(start)

    def append(self, rows: Sequence[TextRow], said: Sequence[Mapping[str, Any]], counted: Iterable[str]) -> None:
        """Write a block, and note that it is there."""
        joined = _join(rows, said)
        if self.names is None:
            self.names = list(dict.fromkeys(name for row in joined for name in row))
            head = _table_line(self.names, self.path) if self.path.suffix.lower() != ".jsonl" else ""
            self._write(head.encode())
        self._write("".join(self._line(row) for row in joined).encode())
        self.rows += len(rows)
        for label in counted:
            self.counts[label] = self.counts.get(label, 0) + 1
        with translate_disk_errors(self.path):
            self._handle.flush()
            os.fsync(self._handle.fileno())
        if self.made_of is not None:
            state = {"made_of": self.made_of, "rows": self.rows, "bytes": self._handle.tell(), "names": self.names, "counts": self.counts}
            atomic_write(self.journal, json.dumps(state, ensure_ascii=False))

    def finish(self) -> None:
        """Give the file its name."""
        self._handle.close()
        with translate_disk_errors(self.path):
            self.growing.replace(self.path)
            self.journal.unlink(missing_ok=True)
            sync(self.path.parent)

    def discard(self) -> None:
        """Remove what was written, where nobody could go on with it."""
        self._handle.close()
        if self.made_of is None or not self.rows:
            self.growing.unlink(missing_ok=True)
            self.journal.unlink(missing_ok=True)

    def _resume(self) -> int:
        """Return from which byte on to write; what another command left there is begun anew."""
        try:
            state = json.loads(self.journal.read_bytes())
            fits = state["made_of"] == self.made_of and self.growing.stat().st_size >= state["bytes"]
            if fits:
                self.rows, self.names, self.counts = int(state["rows"]), list(state["names"]), dict(state["counts"])
                return int(state["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self.journal.unlink(missing_ok=True)
        return 0

    def _write(self, content: bytes) -> None:
        with translate_disk_errors(self.path):
            self._handle.write(content)

    def _line(self, row: Mapping[str, Any]) -> str:
        if self.path.suffix.lower() == ".jsonl":
            return json.dumps(dict(row), ensure_ascii=False) + "\n"
        assert self.names is not None
        unknown = next((name for name in row if name not in self.names), None)
        if unknown is not None:
            raise InputError(
                f"{self.path}: a row has the column {quote(unknown)}, which rows before it do not have\n  write .jsonl instead"
            )
        return _table_line([row.get(name) for name in self.names], self.path)


def label_file(
    rows: Iterator[TextRow],
    output: LabelledFile | None,
    say: Callable[[list[TextRow]], list[dict[str, Any]]],
    *,
    source: str,
    show: Callable[[Sequence[TextRow], Sequence[Mapping[str, Any]]], None] | None = None,
) -> int:
    """Label all rows block by block, into a file or to `show`; return how many there are, those of an earlier run included."""
    done = output.rows if output is not None else 0
    skipped = sum(1 for _ in islice(rows, done))
    if skipped < done:
        raise DamagedFile(
            f"{source}: has {count(skipped, 'row')}, but {count(done, 'row')} had a label before\n  remove the file beside the output"
        )
    try:
        while block := list(islice(rows, BLOCK)):
            said = say(block)
            if output is not None:
                output.append(block, said, (name for each in said for name in list_said(each)))
            if show is not None:
                show(block, said)
            done += len(block)
        if not done:
            raise no_text([source])
    except BaseException:
        if output is not None:
            output.discard()
        raise
    if output is not None:
        output.finish()
    return done


def list_said(said: Mapping[str, Any]) -> list[str]:
    """Return the labels that outputs count a text under; an empty one where it has none."""
    names: list[str] = said["labels"] if "labels" in said else [said["label"]]
    return names or [""]


def _join(rows: Sequence[TextRow], said: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every row with what is said of it; a name that the first row uses already gets a number."""
    taken = set(rows[0].values)
    names = {}
    for name in said[0]:
        numbered = (f"{name}_{number}" for number in count_from(2))
        names[name] = name if name not in taken else next(free for free in numbered if free not in taken)
    return [{**row.values, **{names[name]: value for name, value in each.items()}} for row, each in zip(rows, said, strict=True)]


def _table_line(cells: Sequence[Any], path: Path) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter="," if path.suffix.lower() == ".csv" else "\t", lineterminator="\n").writerow(
        [json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict | bool) else cell for cell in cells]
    )
    return out.getvalue()


def _guess_label_column(rows: Sequence[TextRow], file: str) -> str:
    present = {name.strip().lower(): name for name in rows[0].values}
    found = next((present[name] for name in LABEL_COLUMNS if name in present), None)
    if found is None:
        columns = ", ".join(quote(name) for name in rows[0].values)
        raise InputError(f"{file}: which column holds the label? found {columns}\n  name it with --label-column")
    return found


def _split(value: Any, separator: str) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            listed = json.loads(value)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return listed
    return [part.strip() for part in value.split(separator) if part.strip()] if isinstance(value, str) else [value]


def _cell_of(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    present = {name.strip().lower(): name for name in values}
    return next((values[present[name]] for name in names if name in present and values[present[name]] not in (None, "")), None)


def _is_file(given: str) -> bool:
    try:
        return Path(given).is_file()
    except (OSError, ValueError):  # a list of labels may be longer than a name can be
        return False
