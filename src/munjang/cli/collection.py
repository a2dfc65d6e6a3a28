"""What `pairs` and `match` compare: the rows of a file, or the documents of a library with the vectors that it already holds.

A document that was split into passages has the mean of their vectors. Vectors of different models are never compared: a file beside a
library is encoded with the library's model, and two libraries must have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli.library_files import load_for
from munjang.cli.load_model import load_encoder
from munjang.cli.options import Columns, chosen_pooling
from munjang.cli.row_files import TextRow, read_text_rows
from munjang.errors import InputError, UsageError, quote

if TYPE_CHECKING:
    from munjang.library.store import Settings
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.types import Compute, Encoder, Vectors

_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, eq=False)
class TextCollection:
    """Rows to compare; a library's come with their vectors and with what made them."""

    source: str
    rows: list[TextRow]
    vectors_ND: Vectors | None = None
    settings: Settings | None = None

    @property
    def texts(self) -> list[str]:
        """The text of every row."""
        return [row.text for row in self.rows]


def read_collection(path: str, columns: Columns) -> TextCollection:
    """Read a library or a whole file."""
    if is_library(path):
        return _library(path)
    return TextCollection(path, read_text_rows(path, columns))


def is_library(path: str) -> bool:
    """Say whether a name is that of a library: an address of a server, or a SQLite file."""
    from munjang.library.open_store import ADDRESSES

    if path.startswith(ADDRESSES):
        return True
    if path == "-" or not Path(path).is_file():
        return False
    with Path(path).open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def encoder_for(
    collections: Sequence[TextCollection], model: str | None, *, compute: Compute | None, always: bool = False
) -> Encoder | None:
    """Load the model whose vectors the collections' can be compared with; another one than a library's is refused.

    Where all have vectors there is nothing to load, unless `always`, or unless a model is named that may not be theirs.
    """
    from munjang.library.open_store import check_settings, choose_views

    if not (always or need_encoder(collections) or model is not None or compute is not None or chosen_pooling() is not None):
        return None
    made = next(((each.source, each.settings) for each in collections if each.settings is not None), None)
    if made is None:
        return load_encoder(model, compute=compute or "float32")
    encoder, _ = choose_views(load_for(*made, model, compute).with_prompt(progress=True), None, made[1].fingerprint)
    check_settings(*made, encoder)
    return encoder


def load_beside(collection: TextCollection, model: str | None, *, compute: Compute | None) -> PromptedEncoder:
    """Load a model to read a collection's texts anew: the one named, else the library's own, else the default one."""
    return load_for(collection.source, collection.settings, model, compute).with_prompt(progress=True)


def vectors_of(collections: Sequence[TextCollection], encoder: Encoder | None) -> list[Vectors]:
    """Return each collection's vectors; the encoder is for those that have none, and may be None if all do."""
    import numpy as np

    refuse_others([(each.source, each.settings) for each in collections if each.settings is not None])
    found = []
    for each in collections:
        if each.vectors_ND is not None:
            found.append(each.vectors_ND)
        elif encoder is not None:
            found.append(np.asarray(encoder.encode(each.texts), dtype=np.float32))
        else:
            raise UsageError(f"{each.source}: has no vectors yet, expected a model that makes them")
    return found


def need_encoder(collections: Sequence[TextCollection]) -> bool:
    """Say whether there are texts without vectors."""
    return any(each.vectors_ND is None for each in collections)


def _library(path: str) -> TextCollection:
    import numpy as np

    from munjang.library.library import Library
    from munjang.library.matrix import document_vector

    rows: list[TextRow] = []
    vectors: list[Vectors] = []
    with Library.open(path, create=False) as library:
        settings, source = library.store.settings(), library.store.name
        for block in library.store.entries():
            for entry in block:
                document = entry.document
                values = {"id": document.id, "text": document.text, **document.metadata}
                rows.append(TextRow(len(rows) + 1, document.id, document.text, values))
                vectors.append(document_vector(entry.vectors_PD, entry.lengths_P))
    if not rows:
        raise InputError(f"{source}: holds no document, expected at least one\n  add some with munjang add")
    return TextCollection(path, rows, np.stack(vectors), settings)


def refuse_others(libraries: Sequence[tuple[str, Settings]]) -> None:
    """Refuse libraries whose vectors are not those of the first one's model; a library has a name and settings."""
    for other, theirs in libraries[1:]:
        one, mine = libraries[0]
        if theirs.fingerprint != mine.fingerprint:
            ways = f" --compute {mine.compute}" if mine.compute else ""
            raise UsageError(
                f"{other}: was built with {_describe_model(theirs)}, {one} with {_describe_model(mine)}; "
                "vectors of two models cannot be compared\n"
                f"  re-encode one of them: munjang reencode {other} --model {mine.model}{ways}"
            )


def _describe_model(settings: Settings) -> str:
    ways = f" in {settings.compute}" if settings.compute else ""
    return f"the model {quote(settings.model)} ({settings.fingerprint[:12]}){ways}"
