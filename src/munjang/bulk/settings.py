"""Everything a bulk job's vectors depend on, apart from the model and the input files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from munjang.errors import UsageError
from munjang.models.long_text import LongText
from munjang.text.records import Format
from munjang.types import Compute, Pooling, Precision
from munjang.wording import brief_repr

if TYPE_CHECKING:
    from munjang.models.batch_encoder import Encoded
    from munjang.models.sentence_encoder import SentenceEncoder

OutputFormat: TypeAlias = Literal["parquet", "npy"]

SHARD_ROWS = 16_384
"""Rows of a shard: about a minute of work, and few enough megabytes to build in memory."""


@brief_repr
@dataclass(frozen=True)
class BulkSettings:
    """How rows are read, turned into vectors and written. What is None follows from the file or the model."""

    format: OutputFormat = "parquet"
    text_column: str | None = None
    id_column: str | None = None
    input_format: Format | None = None
    encoding: str = "utf-8-sig"
    quoting: bool | None = None
    keep_text: bool = False
    precision: Precision = "float32"
    dimensions: int | None = None
    normalize: bool = False
    prompt_name: str | None = None
    long_text: LongText = "truncate"
    """With "error", a text beyond the model's limit is a rejected row."""
    compute: Compute = "float32"
    pooling: Pooling | None = None
    """For a model folder that does not name one."""
    shard_rows: int = SHARD_ROWS

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
        for name, known in (("format", OutputFormat), ("precision", Precision), ("long_text", LongText), ("compute", Compute)):
            if getattr(self, name) not in get_args(known):
                raise UsageError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(get_args(known))}")
        if self.shard_rows < 1:
            raise UsageError(f"shard_rows is {self.shard_rows}, expected at least 1")
        if self.input_format == "json":
            raise UsageError("a JSON list cannot be read in parts\n  convert it to JSON Lines, one object a line")
