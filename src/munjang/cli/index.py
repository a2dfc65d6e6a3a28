"""`munjang index`: what searches of a library need, made now: its search index, and with --late a vector for every token."""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli.library_files import LibraryArgument, PatienceOption, open_with_model
from munjang.cli.options import Chosen, JsonOption, LibraryComputeOption, ModelOption, Takes, examples, new_app
from munjang.cli.show import emit, print_facts
from munjang.cli.text_analysis import DictionaryOption
from munjang.file_lock import PATIENCE
from munjang.library.library import Library
from munjang.vectors.maxsim import DEFAULT_FORMAT
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        "munjang index news.db",
        "munjang index news.db --late",
        "munjang index news.db --dictionary words.tsv",
        "munjang index postgresql://localhost/news --method hnsw --precision binary",
    )
)
def index(
    library: LibraryArgument,
    *,
    late: Annotated[
        bool, typer.Option("--late", help="Also make a vector for every token, one bit per dimension, to re-rank searches.")
    ] = False,
    options: Annotated[Chosen, Takes(Library.prepare)],
    dictionary: DictionaryOption = None,
    model: ModelOption = None,
    compute: LibraryComputeOption = None,
    patience: PatienceOption = PATIENCE,
    as_json: JsonOption = False,
) -> None:
    """Build what searches of a library use.

    Without options: the search index, which the first search would build otherwise.
    With --late, every passage is read again; the same command continues where an interruption stopped it. Searches use the new vectors
    when all are there. With --dictionary, the word index is rebuilt and vectors stay; an empty file removes the old dictionary.
    """
    from munjang.models.progress import progress_bar
    from munjang.text.dictionary import read_dictionary

    passages = 0
    if late:
        with open_with_model(library, model, compute=compute, patience=patience) as opened:
            kept = opened.store.codebook()
            with progress_bar("index", None, shown=True) as advance:
                passages = opened.add_token_vectors(DEFAULT_FORMAT if kept is None else kept.codebook.format, progress=advance)
    with Library.open(library, create=False, patience=patience) as opened:
        if dictionary is not None:
            opened.use_dictionary(read_dictionary(dictionary))
        info = opened.info()
        with progress_bar("index", info.passages, shown=True) as advance:
            answered = opened.prepare(**options, progress=advance)
    if as_json:
        emit({"passages": passages, "token_vectors": info.token_vectors, "dictionary": info.dictionary, "search": answered})
        return
    facts = [
        ("search", answered),
        ("token vectors", info.token_vectors or "none"),
        ("dictionary", count(info.dictionary, "entry")),
    ]
    print_facts([*facts, *([("passages read", f"{passages:,}")] if late else [])])
