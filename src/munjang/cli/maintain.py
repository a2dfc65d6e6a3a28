"""The short commands that keep a library: `munjang info`, `check`, `remove`, `reencode`, `copy`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.library_files import LibraryArgument, PatienceOption, load_for
from munjang.cli.options import Chosen, JsonOption, LibraryComputeOption, ModelOption, Takes, examples, new_app
from munjang.cli.show import emit, one_line, print_facts, size_text
from munjang.errors import DamagedFile
from munjang.file_lock import PATIENCE
from munjang.library.copying import copy_library
from munjang.models.progress import progress_bar
from munjang.wording import count, plural

if TYPE_CHECKING:
    from munjang.library.results import Info
    from munjang.library.store import StoreNode

app = new_app()


@app.command(epilog=examples("munjang info news.db", "munjang info news.db --json"))
def info(library: LibraryArgument, as_json: JsonOption = False) -> None:
    """Show what a library contains and how it was made."""
    from munjang.library.library import Library

    with Library.open(library, create=False) as opened:
        found, nodes = opened.info(), opened.store.nodes()
    path = Path(library)
    own = sum(node.bytes for node in nodes)
    caches = sum(each.stat().st_size for each in path.with_name(path.name + ".cache").glob("*")) if path.is_file() else 0
    if as_json:
        emit({**asdict(found), "bytes": own, "cache_bytes": caches, "nodes": [asdict(node) for node in nodes]})
        return
    print_facts(
        [
            ("library", found.name),
            ("documents", f"{found.documents:,}"),
            ("passages", f"{found.passages:,} of at most {count(found.passage_characters, 'character')}"),
            ("model", f"{model_text(found)}, {found.dimension} dimensions"),
            ("words", _words(found.analyser)),
            *([("dictionary", count(found.dictionary, "entry"))] if found.dictionary else []),
            *([("token vectors", found.token_vectors)] if found.token_vectors else []),
            ("size", f"{size_text(own)}, caches {size_text(caches)}"),
            *([("shards", _say_shards(nodes))] if len(nodes) > 1 else []),
        ]
    )


def _say_shards(nodes: Sequence[StoreNode]) -> str:
    each = (f"{node.name} {node.shards:,} ({size_text(node.bytes)})" for node in nodes)
    return f"{sum(node.shards for node in nodes):,} on {count(len(nodes), 'node')}: {', '.join(each)}"


def model_text(found: Info) -> str:
    """Return what a library says of its model in one line: its name, its fingerprint, and how it computed where that is known."""
    ways = [found.compute, None if found.pooling is None else f"{found.pooling} pooling"]
    return ", ".join((f"{found.model} ({found.fingerprint[:12]})", *(way for way in ways if way)))


def _words(way: str) -> str:
    from munjang.library.words import analyser_of, has_stems

    analyser = analyser_of(way)
    named = {"kiwi": "morphemes (Kiwi)", "bigrams": "words and pairs of characters"}
    korean = named.get(analyser, f"morphemes ({analyser.removeprefix('pos:')})")
    return korean + (", English as stems" if has_stems(way) else ", English as it is written; munjang reencode gives stems")


@app.command(epilog=examples("munjang check news.db", "munjang check news.db --json"))
def check(library: LibraryArgument, as_json: JsonOption = False) -> None:
    """Verify a library against its checksums.

    Reads everything; the exit code is 4 if something is damaged.
    """
    from munjang.library.library import Library

    with Library.open(library, create=False) as opened:
        findings = opened.check()
        documents = opened.info().documents if not findings else None
    if as_json:
        emit({"sound": not findings, "documents": documents, "findings": findings})
    else:
        for finding in findings:
            print(one_line(finding))
        wrong = f"{count(len(findings), 'thing')} {plural(len(findings), 'is')} wrong"
        print(f"sound: {count(documents, 'document')}" if documents is not None else wrong)
    if findings:
        raise typer.Exit(DamagedFile.exit_code)


@app.command(epilog=examples("munjang remove news.db a b", "munjang remove news.db a --compact"))
def remove(
    library: LibraryArgument,
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="The documents' ids.")],
    compact: Annotated[bool, typer.Option("--compact", help="Reclaim disk space.")] = False,
    patience: PatienceOption = PATIENCE,
    as_json: JsonOption = False,
) -> None:
    """Remove documents from a library by id."""
    from munjang.library.library import Library

    with Library.open(library, create=False, patience=patience) as opened:
        removed = opened.remove(ids)
        if compact:
            opened.compact()
        left = opened.info().documents
    if as_json:
        emit({"removed": removed, "unknown": len(set(ids)) - removed, "documents": left})
    else:
        print_facts([("removed", f"{removed:,}"), ("unknown", f"{len(set(ids)) - removed:,}"), ("documents now", f"{left:,}")])


@app.command(epilog=examples("munjang reencode news.db --model my-model"))
def reencode(
    library: LibraryArgument,
    model: ModelOption = None,
    compute: LibraryComputeOption = None,
    patience: PatienceOption = PATIENCE,
    as_json: JsonOption = False,
) -> None:
    """Re-encode every document of a library.

    Settings that are not given stay the same.
    The library changes atomically at the end; until then it can be searched with the old model, and an interruption changes nothing.
    """
    from munjang.library.library import Library

    with Library.open(library, create=False, patience=patience) as opened:
        encoder = load_for(library, opened.store.settings(), model, compute).with_prompt(progress=True)
        before = opened.info()
        with progress_bar("reencode", before.documents, shown=True) as advance:
            opened.reencode(encoder, progress=advance)
        after = opened.info()
    if as_json:
        emit({"before": asdict(before), "after": asdict(after)})
    else:
        print_facts([("documents", f"{after.documents:,}"), ("model before", model_text(before)), ("model now", model_text(after))])


@app.command(
    epilog=examples(
        "munjang copy news.db copy.db",
        "munjang copy news.db postgresql://localhost/news",
        "munjang copy news.db postgresql://coordinator/news#news --distributed",
    )
)
def copy(
    library: LibraryArgument,
    target: Annotated[str, typer.Argument(metavar="LIBRARY", help="The target: a new library, or one with the same model.")],
    *,
    options: Annotated[Chosen, Takes(copy_library)],
    as_json: JsonOption = False,
) -> None:
    """Copy documents and vectors from one library to another.

    Nothing is encoded again; what was written is read back and compared. A new file is a snapshot of one commit, also while others write
    to the library; if interrupted, it starts over. Into an existing library, or on a server, the same command continues.
    """
    from munjang.library.library import Library

    with Library.open(library, create=False) as source, progress_bar("copy", source.info().documents, shown=True) as advance:
        copied = copy_library(source.store, target, progress=advance, **options)
    with Library.open(target, create=False) as made:
        documents, passages = made.store.count()
    if as_json:
        emit({"copied": copied, "documents": documents, "passages": passages})
    else:
        print_facts([("copied", f"{copied:,}"), ("documents now", f"{documents:,}")])
