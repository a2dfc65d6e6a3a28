"""A path or an address, and an encoder → a store that fits them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias, get_args

from munjang.errors import UsageError, quote
from munjang.library.passages import CHARACTERS_PER_TOKEN, DEFAULT_CHARACTERS
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Settings, Store
from munjang.library.words import with_stems
from munjang.options import Option
from munjang.text.korean import choose_analyser, split_by
from munjang.text.pos_analysers import INSTALLED, MARK, PosAnalyser, use_analyser
from munjang.types import Compute, Encoder, RoleEncoder, check_encoder

ADDRESSES = ("postgresql://", "postgres://")
"""How the name of a library on a server begins."""

COMPUTES: tuple[Compute, ...] = tuple(each for each in get_args(Compute) if each != "auto")
"""What an encoder's `compute` may be."""

LEAST_CHARACTERS, MOST_CHARACTERS = 200, 4_000


DistributedOption: TypeAlias = Annotated[
    bool, Option("Spread the library over the nodes of a PostgreSQL cluster (Citus; new libraries only).")
]


def open_store(
    path: str | Path, create_with: Settings | None, *, name: str | None = None, distributed: bool = False
) -> tuple[Store, Path | None]:
    """Return the store, and the folder for its caches if it wants any; messages call it by its name, else by its place."""
    if isinstance(path, str) and path.startswith(ADDRESSES):
        from munjang.library.pgvector_store import PgvectorStore

        return PgvectorStore.open(path, create_with=create_with, name=name, distributed=distributed), None
    if distributed:
        raise UsageError(f"{path}: is a file, expected the address of a Citus coordinator, postgresql://host/database#name")
    path = Path(path)
    return SqliteStore.open(path, create_with=create_with, name=name), path.with_name(path.name + ".cache")


def settings_for(encoder: Encoder, *, analyser: str | PosAnalyser | None = None, passage_characters: int | None = None) -> Settings:
    """Return the settings of a new library; passages are as long as the model reads, if it says how long that is."""
    if analyser is not None:
        analyser = _name_analyser(analyser)
        split_by(analyser)
    characters = passage_characters or characters_for(getattr(encoder, "max_length", None))
    return Settings(
        model=model_name(encoder),
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        analyser=with_stems(analyser or choose_analyser(noted=True)),
        passage_characters=characters,
        passage_overlap=characters // 5,
        compute=_compute(encoder),
        pooling=_pooling(encoder),
    )


def _name_analyser(analyser: str | PosAnalyser) -> str:
    if not isinstance(analyser, str):
        return use_analyser(analyser)
    return MARK + analyser if analyser in INSTALLED else analyser


def choose_views(encoder: Encoder, query_encoder: Encoder | None, made: str | None) -> tuple[Encoder, Encoder]:
    """Return the encoders of documents and of queries: a model's own prompts for them come from the model (`RoleEncoder`).

    `made` is the fingerprint that a library was made with, None for a new one. A library made without prompts is read without them.
    """
    check_encoder(encoder)
    check_encoder(query_encoder or encoder, "query_encoder")
    documents = encoder.for_documents() if isinstance(encoder, RoleEncoder) else encoder
    queries = query_encoder or encoder
    if made != documents.fingerprint and made == encoder.fingerprint:
        return encoder, queries
    return documents, queries.for_queries() if isinstance(queries, RoleEncoder) else queries


def require_encoder(encoder: Encoder | None, store: Store) -> Encoder:
    """Return the encoder; refuse to go on without one."""
    if encoder is None:
        raise UsageError(f"{store.name}: was opened without a model, which this needs\n  open it with an encoder")
    return encoder


def check_model(store: Store, encoder: Encoder) -> None:
    """Refuse an encoder whose vectors are not those of the store."""
    check_settings(store.name, store.settings(), encoder)


def check_settings(name: str, found: Settings, encoder: Encoder) -> None:
    """Refuse an encoder whose vectors are not those of the library of that name."""
    if found.fingerprint == encoder.fingerprint and found.dimension == encoder.dimension:
        return
    named = f"the model {quote(found.model)} ({found.fingerprint[:12]})"
    given = f"{quote(model_name(encoder))} ({encoder.fingerprint[:12]})"
    is_named_so = found.model == model_name(encoder)
    (model_then, _, prompt_then), (model_now, _, prompt_now) = found.fingerprint.partition(" "), encoder.fingerprint.partition(" ")
    if model_then == model_now:
        fact = f"{name}: was built with {named} and {_say_prompt(prompt_then)}, found {_say_prompt(prompt_now)}"
        raise UsageError(f"{fact}\n  open it with that prompt (SentenceEncoder.with_prompt), or re-encode it with Library.reencode")
    for setting, made, asked in (
        ("compute", _compute_then(found, encoder), _compute(encoder)),
        ("pooling", found.pooling if is_named_so else None, _pooling(encoder)),
    ):
        if made is not None and asked is not None and made != asked:
            fact = f"{name}: was built with {named} and {setting} {made}, found {setting} {asked}"
            raise UsageError(f"{fact}\n  load the model with {setting}={made!r}, or re-encode the library with Library.reencode").at_shell(
                f"{fact}\n  leave --{setting} out, or re-encode the library: munjang reencode {name} --{setting} {asked}"
            )
    fact = f"{name}: was built with {named}, found {given}"
    if not is_named_so:
        raise UsageError(f"{fact}\n  use {quote(found.model)}, or change the library's model with Library.reencode").at_shell(
            f"{fact}\n  name {quote(found.model)} with --model, or change the library's model with munjang reencode"
        )
    raise UsageError(
        f"{fact}; the name is the same, so its weights, its prompt or its longest text differ\n"
        "  load the model that was used then, or re-encode the library with Library.reencode"
    ).at_shell(
        f"{fact}; the name is the same, so its files changed, or its prompt\n"
        "  name the folder of the model that was used then with --model, or re-encode the library with munjang reencode"
    )


def _say_prompt(label: str) -> str:
    return f"the prompt {quote(label)}" if label else "no prompt"


def _compute_then(settings: Settings, encoder: Encoder) -> str | None:
    """Return how this very model computed when the library was made: the one whose fingerprint fits; None for another model."""
    as_computed = getattr(encoder, "fingerprint_as", None)
    return next((each for each in COMPUTES if as_computed is not None and as_computed(each) == settings.fingerprint), None)


def _compute(encoder: Encoder) -> str | None:
    found = getattr(encoder, "compute", None)
    return found if found in COMPUTES else None


def _pooling(encoder: Encoder) -> str | None:
    found = getattr(encoder, "pooling", None)
    return found if isinstance(found, str) else None


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
