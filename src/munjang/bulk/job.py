"""The nouns of a bulk job, as data that JSON can hold: settings, the job, its input files, a shard to do, the receipt for one that is done.

`BulkSettings` is everything that vectors depend on, apart from the model and the input files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_origin, get_type_hints

from munjang.errors import DamagedFile, UsageError, quote
from munjang.options import (
    ComputeOption,
    DimensionsOption,
    EncodingOption,
    IdColumnOption,
    LongTextOption,
    NormalizeOption,
    Option,
    PoolingOption,
    PrecisionOption,
    PromptNameOption,
    TextColumnOption,
    check_options,
)
from munjang.types import DEFAULT_COMPUTE, DEFAULT_ENCODING, DEFAULT_LONG_TEXT, DEFAULT_PRECISION, Format
from munjang.wording import brief_repr

if TYPE_CHECKING:
    from munjang.models.batch_encoder import Encoded
    from munjang.models.sentence_encoder import SentenceEncoder


OutputFormat: TypeAlias = Literal["parquet", "npy"]
InputFormat: TypeAlias = Literal["txt", "csv", "tsv", "jsonl", "parquet"]
"""What can be read in parts."""


@brief_repr
@dataclass(frozen=True)
class BulkSettings:
    """How rows are read, turned into vectors and written. What is None follows from the file or the model."""

    format: Annotated[OutputFormat, Option("The files to write.", flags=("--output-format",))] = "parquet"
    text_column: TextColumnOption = None
    id_column: IdColumnOption = None
    input_format: Annotated[InputFormat | None, Option("The input format, if the file names do not show it.")] = None
    encoding: EncodingOption = DEFAULT_ENCODING
    quoting: bool | None = None
    keep_text: Annotated[bool, Option("Write the texts next to their vectors; `munjang add` needs them.")] = False
    precision: PrecisionOption = DEFAULT_PRECISION
    dimensions: DimensionsOption = None
    normalize: NormalizeOption = False
    prompt_name: PromptNameOption = None
    long_text: LongTextOption = DEFAULT_LONG_TEXT
    """With "error", a text beyond the model's limit is a rejected row."""
    compute: ComputeOption = DEFAULT_COMPUTE
    pooling: PoolingOption = None
    shard_rows: Annotated[int, Option("Approximate number of rows per output file.", min=1)] = 16_384
    """About a minute of work, and few enough megabytes to build in memory."""

    def encode(self, encoder: SentenceEncoder, texts: Iterable[str]) -> Encoded:
        """Encode texts as these settings say; those beyond the model's limit are cut and named, also where they are to be rejected."""
        return encoder.encode_with_report(
            texts,
            prompt_name=self.prompt_name,
            long_text="truncate" if self.long_text == "error" else self.long_text,
            precision=self.precision,
            dimensions=self.dimensions,
            normalize=self.normalize,
        )

    def check(self) -> None:
        """Refuse what no job can be run with."""
        if str(self.input_format) == "json":
            raise UsageError("a JSON list cannot be read in parts\n  convert it to JSON Lines, one object a line")
        check_options(BulkSettings, vars(self))


@brief_repr
@dataclass(frozen=True)
class InputFile:
    """One file to read, and what was found by looking at its beginning."""

    path: str
    bytes: int
    modified: str
    """When the file changed last, or the store's tag of its content; empty where the store says neither."""
    format: Format
    text_column: str
    id_column: str | None
    columns: tuple[str, ...] | None
    """Of a CSV or TSV file."""
    begin: int
    """The byte at which rows begin, of the unpacked file; for Parquet 0."""
    first_line: int
    """The number of the line at `begin`."""

    @property
    def packed(self) -> bool:
        """Whether the file is gzipped."""
        return self.path.lower().endswith(".gz")


@brief_repr
@dataclass(frozen=True)
class Model:
    """The model of a job: what it is called, where it was found, and what its vectors are known by."""

    name: str
    path: str
    fingerprint: str
    dimension: int


@brief_repr
@dataclass(frozen=True)
class BulkJob:
    """What is to be done, in full."""

    model: Model
    settings: BulkSettings
    inputs: tuple[InputFile, ...]


@dataclass(frozen=True)
class ShardSpec:
    """A part of one input file: rows that start in the bytes [start, stop) of the unpacked file; for Parquet the rows [start, stop)."""

    number: int
    file: int
    start: int
    stop: int

    @property
    def stem(self) -> str:
        """The name of the shard's files, without suffix."""
        return f"part-{self.number:08d}"


@brief_repr
@dataclass(frozen=True)
class WrittenFile:
    """A file of the output."""

    name: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        if not re.fullmatch(_FILE_NAME, self.name):  # a name that somebody else wrote may not lead out of the folder
            raise ValueError(f"the name {quote(self.name)}")


@brief_repr
@dataclass(frozen=True)
class Receipt:
    """Says that a shard is done and what came of it."""

    shard: int
    rows: int
    rejected: int
    lines: int
    """Lines of the input file that the shard covers; rows for Parquet."""
    encoded: int
    """Distinct texts that the model had to read."""
    tokens: int
    too_long: int
    seconds: float
    files: tuple[WrittenFile, ...]


_FILE_NAME = r"vectors/part-[0-9]{8,20}\.(npy|jsonl|parquet)"
_Noun = TypeVar("_Noun", ShardSpec, WrittenFile, Receipt)


def to_json(value: BulkJob | ShardSpec | Receipt) -> str:
    """Return a noun as one line of JSON."""
    return json.dumps(asdict(value), ensure_ascii=False)


def read_job(value: Any, *, where: str) -> BulkJob:
    """Read a job back."""
    try:
        return BulkJob(
            model=Model(**value["model"]),
            settings=BulkSettings(**value["settings"]),
            inputs=tuple(_read_input(each) for each in value["inputs"]),
        )
    except (KeyError, TypeError) as error:
        raise _make_damage_error(where, error) from None


def read_spec(value: Any, *, where: str) -> ShardSpec:
    """Read a shard's spec back."""
    return _check(ShardSpec, value, where)


def parse_receipt(value: Any, *, where: str) -> Receipt:
    """Read a receipt back."""
    try:
        files = tuple(_check(WrittenFile, each, where) for each in value["files"])
        return _check(Receipt, {**value, "files": files}, where)
    except (KeyError, TypeError, ValueError) as error:
        raise _make_damage_error(where, error) from None


def _read_input(value: Mapping[str, Any]) -> InputFile:
    columns = value["columns"]
    return InputFile(**{**value, "columns": None if columns is None else tuple(columns)})


def _check(kind: type[_Noun], value: Any, where: str) -> _Noun:
    hints = {name: (int, float) if hint is float else get_origin(hint) or hint for name, hint in get_type_hints(kind).items()}
    if not isinstance(value, dict) or set(value) != set(hints) or not all(isinstance(value[name], hints[name]) for name in hints):
        raise _make_damage_error(where, ValueError(f"other keys or types than a {kind.__name__} has"))
    return kind(**value)


def _make_damage_error(where: str, error: Exception) -> DamagedFile:
    return DamagedFile(f"{where}: is not what munjang bulk writes ({error})\n  restore the file, or begin again in another folder")
