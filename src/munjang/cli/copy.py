"""`munjang copy`: a library → another one, as it is."""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli.library_files import LibraryArgument, PatienceOption
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, print_facts
from munjang.file_lock import PATIENCE
from munjang.models.progress import progress_bar

app = new_app()


@app.command(epilog=examples("munjang copy news.db copy.db", "munjang copy news.db postgresql://localhost/news"))
def copy(
    library: LibraryArgument,
    target: Annotated[str, typer.Argument(metavar="LIBRARY", help="The target: a new library, or one with the same model.")],
    patience: PatienceOption = PATIENCE,
    as_json: JsonOption = False,
) -> None:
    """Copy documents and vectors from one library to another.

    Nothing is encoded again. A new file is a snapshot of one commit, also while others write to the library; if interrupted, it starts
    over. Into an existing library, or on a server, the same command continues an interrupted copy.
    """
    from munjang.library.copying import copy_library
    from munjang.library.library import Library

    with Library.open(library, create=False) as source, progress_bar("copy", source.info().documents, shown=True) as advance:
        copied = copy_library(source.store, target, progress=advance, patience=patience)
    with Library.open(target, create=False) as made:
        documents, passages = made.store.count()
    if as_json:
        emit({"copied": copied, "documents": documents, "passages": passages})
    else:
        print_facts([("copied", f"{copied:,}"), ("documents now", f"{documents:,}")])
