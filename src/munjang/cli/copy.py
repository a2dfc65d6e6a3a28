"""`munjang copy`: a library → another one, as it is."""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli.library_files import LibraryArgument
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, print_facts

app = new_app()


@app.command(epilog=examples("munjang copy news.db copy.db", "munjang copy news.db postgresql://localhost/news"))
def copy(
    library: LibraryArgument,
    target: Annotated[str, typer.Argument(metavar="LIBRARY", help="Where to: a new library, or one of the same model.")],
    as_json: JsonOption = False,
) -> None:
    """Copy a library's documents with their vectors to another library.

    Nothing is encoded again. An interrupted copy is continued by the same command.
    """
    from munjang.library.copying import copy_documents
    from munjang.library.library import Library
    from munjang.library.opening import open_store
    from munjang.models.progress import progress_bar

    with Library.open(library, create=False) as source:
        store, _ = open_store(target, source.store.settings())
        try:
            with progress_bar("copy", source.info().documents, shown=True) as advance:
                copied = copy_documents(source.store, store, progress=advance)
            documents, passages = store.count()
        finally:
            store.close()
    if as_json:
        emit({"copied": copied, "documents": documents, "passages": passages})
    else:
        print_facts([("copied", f"{copied:,}"), ("documents now", f"{documents:,}")])
