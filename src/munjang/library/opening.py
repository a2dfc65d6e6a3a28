"""A path or an address, and an encoder → a store that fits them."""

from __future__ import annotations

from pathlib import Path

from munjang.errors import UsageError, shown
from munjang.library.passages import CHARACTERS_PER_TOKEN, DEFAULT_CHARACTERS
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Settings, Store
from munjang.library.words import with_stems
from munjang.text.korean import Analyser, best_analyser, split_by
from munjang.types import Encoder

ADDRESSES = ("postgresql://", "postgres://")
"""How the name of a library on a server begins."""

LEAST_CHARACTERS, MOST_CHARACTERS = 200, 4_000


def open_store(path: str | Path, create_with: Settings | None) -> tuple[Store, Path | None]:
    """Return the store, and the folder for its caches if it wants any."""
    if isinstance(path, str) and path.startswith(ADDRESSES):
        from munjang.library.pgvector_store import PgvectorStore

        return PgvectorStore.open(path, create_with=create_with), None
    path = Path(path)
    return SqliteStore.open(path, create_with=create_with), path.with_name(path.name + ".cache")


def settings_for(encoder: Encoder, *, analyser: Analyser | None = None, passage_characters: int | None = None) -> Settings:
    """Return the settings of a new library; passages are as long as the model reads, if it says how long that is."""
    if analyser is not None:
        split_by(analyser)
    characters = passage_characters or characters_for(getattr(encoder, "max_length", None))
    return Settings(
        model=model_name(encoder),
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        analyser=with_stems(analyser or best_analyser(noted=True)),
        passage_characters=characters,
        passage_overlap=characters // 5,
    )


def check_model(store: Store, encoder: Encoder) -> None:
    """Refuse an encoder whose vectors are not those of the store."""
    found = store.settings()
    if found.fingerprint == encoder.fingerprint and found.dimension == encoder.dimension:
        return
    same = "; the name is the same, so its weights, its prompt or --compute must differ" if found.model == model_name(encoder) else ""
    raise UsageError(
        f"{store.name}: was built with the model {shown(found.model)} ({found.fingerprint[:12]}), "
        f"found {shown(model_name(encoder))} ({encoder.fingerprint[:12]}){same}\n"
        f"  use {shown(found.model)}, or change the library's model with munjang reencode"
    )


def model_name(encoder: Encoder) -> str:
    """Return the name people know a model by."""
    name = getattr(encoder, "name", None)
    return name if isinstance(name, str) and name else encoder.fingerprint[:12]


def characters_for(tokens: object) -> int:
    """Return how long passages are for a model that reads so many tokens; a model that does not say gets the default.

    >>> characters_for(512), characters_for(None)
    (1024, 1000)
    """
    if not isinstance(tokens, int):
        return DEFAULT_CHARACTERS
    return min(MOST_CHARACTERS, max(LEAST_CHARACTERS, tokens * CHARACTERS_PER_TOKEN))
