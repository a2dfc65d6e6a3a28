"""What the commands about topics share: arguments, texts with vectors, and a saved model with its encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from munjang.cli.library_files import COMPUTES
from munjang.cli.options import Compute
from munjang.cli.row_files import TextRow
from munjang.errors import InputError, UsageError

if TYPE_CHECKING:
    from munjang.analyze.topics.model import TopicModel
    from munjang.types import Encoder, Vectors

FolderArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a topic model.")]
VectorsOption: TypeAlias = Annotated[
    Path | None, typer.Option("--vectors", help="A .npy file with a vector for each row; without it, texts are encoded.")
]
IdColumnOption: TypeAlias = Annotated[str | None, typer.Option("--id-column", help="The column that holds ids.")]


def read_vectors(path: Path) -> Vectors:
    """Read a .npy file of numbers; anything that would run code is refused."""
    import numpy as np

    try:
        rows = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: is no .npy file of numbers ({type(error).__name__})\n  write one with munjang encode -o") from None
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise InputError(f"{path}: holds {rows.dtype} of shape {rows.shape}, expected a table of numbers, one row for each text")
    return np.asarray(rows, dtype=np.float32)


def own_encoder(model: TopicModel, name: str | None, compute: Compute | None) -> Encoder:
    """Load the encoder that a topic model was made with, computing as it did then, or the one named; another one is refused."""
    from munjang.cli.watched import load_watched

    if not model.encoder and name is None:
        raise UsageError("the topics were found on vectors from a file\n  name their model with --model")
    encoder = load_watched(name or model.encoder_name or None, compute=compute, made=model.encoder or None)
    if not model.encoder or encoder.fingerprint == model.encoder:
        return encoder
    then = next((each for each in COMPUTES if encoder.fingerprint_as(each) == model.encoder), None)
    if then is not None:
        raise UsageError(
            f"the topics were found with {encoder.name} and compute {then}, found compute {encoder.compute}\n"
            "  leave --compute out, or fit the topics again"
        )
    raise UsageError(
        f"the topics were found with another model than {encoder.name} ({encoder.fingerprint[:12]}): {model.encoder[:12]}\n"
        "  name that model with --model, and its --pooling if one was given, or fit the topics again"
    )


def column_values(rows: Sequence[TextRow], column: str, file: str) -> list[Any]:
    """Return a column of all rows."""
    from munjang.text.column_choice import missing_column

    for row in rows:
        if column not in row.values:
            raise missing_column(column, row.values, where=f"{file} row {row.number}")
    return [row.values[column] for row in rows]
