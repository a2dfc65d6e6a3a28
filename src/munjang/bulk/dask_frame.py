"""A Dask dataframe with a column of texts → the same dataframe with a column of vectors, or of labels, computed when Dask asks for it.

Each process loads the model once. The new column has the type of an Arrow list of fixed size, so `to_parquet` writes what other tools read.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from munjang.analyze.classify.apply import apply_classifier, check_same_encoder
from munjang.analyze.classify.classifier import TextClassifier
from munjang.analyze.classify.saving import load_classifier
from munjang.bulk.encode_batch import encode_batch
from munjang.errors import InputError, MissingExtra, UsageError, quote
from munjang.library.open_store import COMPUTES
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import DEFAULT_DEVICE, Device, Encoder


def encode_dask(
    frame: Any,
    column: str,
    *,
    model: str | Path | None = None,
    into: str = "vector",
    normalize: bool = False,
    threads: int = 1,
    device: Device = DEFAULT_DEVICE,
) -> Any:
    """Return the dataframe with the vectors of `column` in the column `into`; nothing is encoded before it is computed.

    The model must be at the same path, or known by the same name, on every worker; `device` is where it computes there.
    """
    try:
        import pandas
        import pyarrow
    except ImportError as error:
        raise MissingExtra("encode_dask", "dask") from error
    _check_column(frame, column)
    path = str(resolve(model).path.resolve())
    dimension = SentenceEncoder.load(path, threads=threads, device=device).dimension
    kind = pandas.ArrowDtype(pyarrow.list_(pyarrow.float32(), dimension))
    meta = frame._meta.assign(**{into: pandas.Series([], dtype=kind)})
    return frame.map_partitions(_add_vectors, column, into, path, dimension, normalize, threads, device, meta=meta)


def classify_dask(
    frame: Any,
    column: str,
    classifier: str | Path,
    *,
    precision: float | None = None,
    into: str = "label",
    threads: int = 1,
    device: Device = DEFAULT_DEVICE,
) -> Any:
    """Return the dataframe with the label of each text of `column`, and its probability; nothing is labelled before it is computed.

    `classifier` is a saved classifier's folder. It and its model must be at the same path, or known by the same name, on every worker.
    The columns are `into` and `into` with "_probability" behind it. With `precision` the label is missing where the classifier abstains.
    """
    try:
        import pandas
        import pyarrow
    except ImportError as error:
        raise MissingExtra("classify_dask", "dask") from error
    _check_column(frame, column)
    folder = str(Path(classifier).resolve())
    made = load_classifier(folder)
    if made.multi:
        raise UsageError(f"{folder}: gives a text several labels, expected a classifier with one for each")
    _load_encoder(folder, threads, device)
    if precision is not None:
        made.abstain_at(precision)  # refuse here what every worker would refuse
    empty = {into: pandas.Series([], dtype=pandas.ArrowDtype(pyarrow.string())), f"{into}_probability": pandas.Series([], dtype="float32")}
    return frame.map_partitions(_add_labels, column, folder, precision, into, threads, device, meta=frame._meta.assign(**empty))


def _add_labels(part: Any, column: str, folder: str, precision: float | None, into: str, threads: int, device: Device) -> Any:
    """Add the labels of one partition."""
    import pandas
    import pyarrow

    made, encoder = _load_encoder(folder, threads, device)
    labels = apply_classifier(made, _read_texts(part, column), encoder, precision=precision)
    names = pandas.Series([each.label for each in labels], index=part.index, dtype=pandas.ArrowDtype(pyarrow.string()))
    chances = pandas.Series([each.probability for each in labels], index=part.index, dtype="float32")
    return part.assign(**{into: names, f"{into}_probability": chances})


def _check_column(frame: Any, column: str) -> None:
    if column not in frame.columns:
        raise InputError(f"the dataframe has no column {quote(column)}, found {', '.join(quote(str(name)) for name in frame.columns)}")


def _read_texts(part: Any, column: str) -> list[str]:
    texts: list[str] = part[column].tolist()
    others = [text for text in texts if not isinstance(text, str)]
    if others:
        raise InputError(f"{quote(column)} holds a {type(others[0]).__name__}, expected texts only\n  fill or drop missing values first")
    return texts


def _add_vectors(part: Any, column: str, into: str, path: str, dimension: int, normalize: bool, threads: int, device: Device) -> Any:
    """Add the vectors of one partition."""
    import pandas
    import pyarrow

    batch = pyarrow.record_batch([pyarrow.array(_read_texts(part, column), pyarrow.string())], ["text"])
    encoded = encode_batch(batch, "text", model=path, normalize=normalize, threads=threads, device=device)
    lists = encoded.column("vector").cast(pyarrow.list_(pyarrow.float32(), dimension))
    return part.assign(**{into: pandas.Series(pandas.arrays.ArrowExtensionArray(lists), index=part.index)})


@lru_cache(maxsize=2)
def _load_encoder(folder: str, threads: int, device: Device) -> tuple[TextClassifier, Encoder]:
    """Load a classifier with its model, which computes as it did for the examples."""
    made = load_classifier(folder)
    if not made.encoder:
        raise UsageError(f"{folder}: was made of vectors, not of a model's texts, expected a classifier that names its model")
    model = SentenceEncoder.load(made.encoder_name or None, threads=threads, device=device)
    wanted = made.encoder.split(" ")[0]
    compute = next((each for each in COMPUTES if model.fingerprint_as(each) == wanted), model.compute)
    if compute != model.compute:
        model = SentenceEncoder.load(made.encoder_name or None, compute=compute, threads=threads, device=device)
    encoder = model.with_prompt()
    check_same_encoder(made, encoder)
    return made, encoder
