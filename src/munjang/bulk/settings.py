"""Everything a bulk job's vectors depend on, apart from the model and the input files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from munjang.errors import UsageError, quote
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
from munjang.types import DEFAULT_COMPUTE, DEFAULT_ENCODING, DEFAULT_LONG_TEXT, DEFAULT_PRECISION
from munjang.wording import brief_repr

if TYPE_CHECKING:
    from munjang.models.batch_encoder import Encoded
    from munjang.models.sentence_encoder import SentenceEncoder

LOCAL = "local"
"""A Dask cluster on this machine, in the place of a scheduler's address."""

_LOOPBACK = re.compile(r"(tcp://)?(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?/?$")
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


def check_address(address: str) -> None:
    """Refuse an address on a network without TLS.

    >>> check_address("tls://scheduler.example:8786"), check_address("tcp://127.0.0.1:8786")
    (None, None)
    """
    if address.startswith("tls://") or _LOOPBACK.match(address):
        return
    raise UsageError(
        f"{quote(address)}: is neither on this machine nor encrypted, expected tls://host:port, tcp://127.0.0.1:port or {LOCAL!r}\n"
        "  start dask scheduler and dask worker with --tls-ca-file, --tls-cert and --tls-key (docs/bulk.md)"
    )
