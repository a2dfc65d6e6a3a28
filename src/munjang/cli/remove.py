"""`munjang remove`: documents go from a library."""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli.library_files import LibraryArgument, PatienceOption
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, print_facts
from munjang.file_lock import PATIENCE

app = new_app()


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
