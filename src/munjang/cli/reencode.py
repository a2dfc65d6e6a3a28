"""`munjang reencode`: another model for a library, in one step."""

from __future__ import annotations

from dataclasses import asdict

from munjang.cli.info import model_text
from munjang.cli.library_files import LibraryArgument, load_for, passage_length
from munjang.cli.options import JsonOption, LibraryComputeOption, ModelOption, examples, new_app
from munjang.cli.show import emit, print_facts

app = new_app()


@app.command(epilog=examples("munjang reencode news.db --model my-model"))
def reencode(
    library: LibraryArgument,
    model: ModelOption = None,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Encode every document of a library anew.

    What --model, --pooling and --compute do not say stays as it is.
    The library changes in one step at the end; until then it can be searched with the old model, and an interruption leaves it as it was.
    """
    from munjang.cli.watched import for_search
    from munjang.library.library import Library
    from munjang.models.progress import progress_bar

    with Library.open(library, create=False) as opened:
        queries, documents = for_search(load_for(library, opened.store.settings(), model, compute))
        before = opened.info()
        with progress_bar("reencode", before.documents, shown=True) as advance:
            opened.reencode(documents, query_encoder=queries, passage_characters=passage_length(documents), progress=advance)
        after = opened.info()
    if as_json:
        emit({"before": asdict(before), "after": asdict(after)})
    else:
        print_facts([("documents", f"{after.documents:,}"), ("model before", model_text(before)), ("model now", model_text(after))])
