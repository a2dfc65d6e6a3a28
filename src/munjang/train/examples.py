"""Data files → examples: the texts of a row, its label as a number, and where it stood.

In: a `DataSource` of a recipe: a path and, where the layout is not one that is recognised, which columns hold what. Out: an `ExampleSet`
with the kind of its labels. Scores are scaled to 0 … 1 from the stated range, class names become numbers, groups of like sentences become
pairs. A broken line is an error that names it; with skip_bad it is left out and counted. Which objective fits is `objectives.registry`'s.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from munjang.data import (
    AnyDataset,
    LabelledPair,
    LabelledText,
    ReadOptions,
    ScoredPair,
    TextPair,
    Triplet,
    read_any,
)
from munjang.data.read import READERS
from munjang.data.unlabelled import make_row_filter, read_parallel_pairs, read_plain_texts
from munjang.errors import InputError, UsageError, quote
from munjang.options import Option
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.text.readers import read_rows
from munjang.text.records import BadLines
from munjang.types import DEFAULT_COMPUTE, Compute
from munjang.wording import brief_repr

Kind: TypeAlias = Literal["scored", "labelled", "pairs", "triplets", "texts", "parallel", "plain", "sentences"]
"""plain: texts without labels, each a row; sentences: the same, cut into sentences."""
Label: TypeAlias = Literal["class", "score", "binary", "margins"]
LabelKind: TypeAlias = Label | Literal["vectors"]
"""class: 0…K−1. score: any number, larger is more alike. binary: 0 or 1. margins: a teacher's scores. vectors: a teacher's vectors."""
VECTOR_FILES = (".jsonl", ".parquet")
"""How the name of a file of texts with their vectors ends; any other teacher is a model."""
SourceRow: TypeAlias = ScoredPair | LabelledPair | TextPair | Triplet | LabelledText


@brief_repr
@dataclass(frozen=True)
class TeacherRecipe:
    """The teacher's folder or name; `prompt` (a name among its prompts, or the text itself) goes before every text that it encodes.

    Instead of a model, `model` may be a file of texts with their vectors, as `munjang encode --keep-text` writes it (.jsonl, .parquet).
    `cache` is a folder for its vectors that several trainings may share; without it they are kept in the output's own folder.
    """

    model: str
    prompt: Annotated[
        str | None, Option("The name or text of a prompt to put before each of the teacher's texts.", flags=("--teacher-prompt",))
    ] = None
    compute: Annotated[Compute, Option("The teacher's arithmetic.", flags=("--teacher-compute",))] = DEFAULT_COMPUTE
    cache: Annotated[str | None, Option("A folder for the teacher's vectors that several trainings can share.")] = None


@brief_repr
@dataclass(frozen=True)
class DataSource:
    """One data file of a recipe.

    `texts` and `label` name columns (or number them, for a file without a header); nothing named is recognised. `label_range` is the
    lowest and highest score that the file may hold. `scores` names columns with a teacher's scores, one for each text after the first (or
    the margins of the second over each of the others). `limit` keeps that many rows, drawn with the recipe's seed. `where` chooses rows of
    parallel and plain files by the values of other columns. `teacher` is whose vectors these rows learn; without it, the stage's.
    """

    path: str
    kind: Kind | None = None
    layout: str | None = None
    texts: tuple[str, ...] = ()
    label: str | None = None
    label_range: tuple[float, float] | None = None
    scores: tuple[str, ...] | None = None
    labels: Mapping[str, object] | None = None
    skip_bad: Annotated[bool, Option("Skip and count broken lines.")] = False
    limit: Annotated[int | None, Option("Use this many rows of each file, drawn with the seed.", min=1)] = None
    where: tuple[str, ...] = ()
    objective: str | None = None
    settings: Mapping[str, object] | None = None
    teacher: TeacherRecipe | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One row to learn from: a pair, a triplet with one or several negatives. Rows of one `group` must not be each other's negatives.

    `scores` are a teacher's, of each text after the first, or the margins of the second over the others.
    """

    texts: tuple[str, ...]
    label: float | None = None
    where: str = ""
    group: str = ""
    scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class DataShape:
    """What decides the objective. `classes` counts distinct classes or 0/1 labels; `label_range` is the lowest and highest score found."""

    columns: int
    label_kind: LabelKind | None = None
    classes: int | None = None
    label_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class ExampleSet:
    """Examples of one shape. `classes` are the names of classes 0, 1 and so on."""

    examples: tuple[Example, ...]
    label_kind: Label | None
    source: str
    classes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def columns(self) -> int:
        """How many texts a row has; of lists, the longest."""
        return max(len(example.texts) for example in self.examples)

    def shape(self) -> DataShape:
        """Return what decides the objective."""
        labels = [example.label for example in self.examples if example.label is not None]
        if self.label_kind == "margins":
            return DataShape(self.columns, "margins")
        if self.label_kind == "score":
            return DataShape(self.columns, "score", label_range=(min(labels), max(labels)))
        classes = None if self.label_kind is None else len(set(labels))
        return DataShape(self.columns, self.label_kind, classes=classes)


def read_examples(source: DataSource, *, seed: int = 0) -> ExampleSet:
    """Return the examples of one file; an empty file is refused."""
    made = _read_source(source, seed)
    if not made.examples:
        raise InputError(f"{made.source}: no rows to learn from ({len(made.skipped)} were left out)")
    if source.limit is not None and source.limit < len(made):
        kept = sorted(random.Random(seed).sample(range(len(made)), source.limit))  # noqa: S311
        made = replace(made, examples=tuple(made.examples[index] for index in kept))
    return made


def convert_dataset(data: AnyDataset, *, seed: int = 0) -> ExampleSet:
    """Return a data set's rows as examples; sentences with a class become pairs of one class."""
    rows: Sequence[SourceRow] = data.rows
    first = rows[0] if rows else None
    if isinstance(first, LabelledText):
        made = _pair_groups([row for row in rows if isinstance(row, LabelledText)], seed)
        return ExampleSet(tuple(made), None, data.source, skipped=data.skipped, notes=data.notes)
    if isinstance(first, LabelledPair):
        return _number_classes([row for row in rows if isinstance(row, LabelledPair)], data)
    kind: Label | None = "score" if isinstance(first, ScoredPair) else None
    return ExampleSet(tuple(_make_example(row) for row in rows), kind, data.source, skipped=data.skipped, notes=data.notes)


def _read_source(source: DataSource, seed: int) -> ExampleSet:
    if source.kind == "parallel":
        return _read_parallel(source)
    if source.kind in ("plain", "sentences"):
        return _read_plain(source)
    if source.where:
        raise UsageError(f'{source.path}: where chooses rows of parallel and plain files\n  say kind = "parallel" or kind = "plain"')
    listed = len(source.texts) > 3 or source.scores is not None
    return _read_negatives(source) if listed else convert_dataset(_read_dataset(source), seed=seed)


def _read_parallel(source: DataSource) -> ExampleSet:
    found = read_parallel_pairs(source.path, columns=source.texts, where=source.where, skip_bad=source.skip_bad)
    made = tuple(Example((pair.a, pair.b), None, pair.where) for pair in found.pairs)
    return ExampleSet(made, None, Path(source.path).name, skipped=found.skipped, notes=tuple(found.notes()))


def _read_plain(source: DataSource) -> ExampleSet:
    found = read_plain_texts(
        source.path,
        columns=source.texts,
        sentences=source.kind == "sentences",
        skip_bad=source.skip_bad,
        wanted=make_row_filter(source.where),
    )
    made = tuple(Example((text,), None, where) for text, where in found.texts)
    notes = (Message(TrainingWord.TEXTS_REPEATED, count=found.repeated),) if found.repeated else ()
    return ExampleSet(made, None, Path(source.path).name, skipped=found.skipped, notes=notes)


def _make_example(row: SourceRow) -> Example:
    if isinstance(row, ScoredPair):
        return Example((row.a, row.b), row.score, row.where)
    if isinstance(row, Triplet):
        return Example((row.anchor, row.positive, row.negative), None, row.where)
    assert isinstance(row, TextPair)
    return Example((row.a, row.b), None, row.where)


def _number_classes(rows: Sequence[LabelledPair], data: AnyDataset) -> ExampleSet:
    names = tuple(sorted({row.label for row in rows}))
    if len(names) < 2:
        raise InputError(
            f"{data.source}: every label is {quote(names[0])}, expected two classes or more\n  check which column is the label"
        )
    kind: Label = "binary" if set(names) == {"0", "1"} else "class"
    number = {name: float(index) for index, name in enumerate(names)}
    made = tuple(Example((row.a, row.b), number[row.label], row.where) for row in rows)
    return ExampleSet(made, kind, data.source, classes=names, skipped=data.skipped, notes=data.notes)


def _pair_groups(rows: Sequence[LabelledText], seed: int) -> list[Example]:
    groups: dict[str, list[LabelledText]] = {}
    for row in rows:
        groups.setdefault(row.label, []).append(row)
    made = []
    for label, members in groups.items():
        random.Random(f"{seed} {label}").shuffle(members)  # noqa: S311
        for index in range(len(members) if len(members) > 2 else len(members) - 1):
            one, other = members[index], members[(index + 1) % len(members)]
            made.append(Example((one.text, other.text), None, one.where, group=label))
    return made


def _read_dataset(source: DataSource) -> AnyDataset:
    labels = None if source.labels is None else {str(key): str(value) for key, value in source.labels.items()}
    options = ReadOptions(source.layout, None, source.label_range, labels, source.skip_bad)
    kind = source.kind or _choose_kind(source)
    if source.texts:
        roles = {"triplets": ("anchor", "positive", "negative"), "texts": ("text",)}.get(str(kind), ("a", "b"))
        if len(source.texts) != len(roles):
            raise UsageError(f"{source.path}: texts names {len(source.texts)} columns, expected {len(roles)} for {kind}")
        columns = dict(zip(roles, source.texts, strict=True))
        if kind in ("scored", "labelled", "texts"):
            if source.label is None:
                raise UsageError(f"{source.path}: label is not named, {kind} data needs a label column")
            columns["score" if kind == "scored" else "label"] = source.label
        numbered = all(name.isdigit() for name in columns.values())
        options = replace(options, columns={role: int(name) if numbered else name for role, name in columns.items()})
    path = Path(source.path)
    if not path.is_file():
        raise InputError(f"{source.path}: no such file")
    if kind is None:
        return read_any(path, options)
    return READERS[kind](path, options)


def _choose_kind(source: DataSource) -> Kind | None:
    """Return what named columns mean; None where nothing is named and the file is recognised by itself."""
    if not source.texts:
        return "scored" if source.label_range is not None and source.layout is None else None
    if len(source.texts) == 1:
        return "texts"
    if source.label is not None:
        return "scored" if source.label_range is not None else "labelled"
    return "triplets" if len(source.texts) == 3 else "pairs"


def _read_negatives(source: DataSource) -> ExampleSet:
    """Read rows of an anchor, its positive and several negatives in columns, with a teacher's scores where columns name them."""
    texts, scores = source.texts, source.scores
    if scores is not None and (len(texts) < 3 or len(scores) not in (len(texts) - 1, len(texts) - 2)):
        raise UsageError(
            f"{source.path}: scores names {len(scores)} columns for {len(texts)} texts, expected texts with a query, a positive and "
            "negatives, and one score for each text after the first (or one margin for each negative)"
        )
    bad = BadLines(keep=1_000_000) if source.skip_bad else None
    made = []
    for row in read_rows(source.path, bad=bad):
        try:
            sentences = tuple(_get_sentence(row.values, name, row.where) for name in texts)
            numbers = tuple(_get_number(row.values, name, row.where) for name in scores or ())
            made.append(Example(sentences, None, row.where, scores=numbers))
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)
    skipped = tuple(bad.first) if bad else ()
    return ExampleSet(tuple(made), "margins" if scores else None, Path(source.path).name, skipped=skipped)


def _get_sentence(values: Mapping[str, object], name: str, where: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {name} is empty or missing, expected a sentence; columns are {', '.join(values)}")
    return value.strip()


def _get_number(values: Mapping[str, object], name: str, where: str) -> float:
    try:
        number = float(str(values.get(name)))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {name} is {quote(str(values.get(name)))}, expected a number; columns are {', '.join(values)}")
    return number
