"""`munjang reencode`: another model for a library, in one step."""

from __future__ import annotations

from dataclasses import asdict

from munjang.cli.library_files import LibraryArgument, passage_length
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, examples, new_app
from munjang.cli.show import emit, print_facts

app = new_app()


@app.command(epilog=examples("munjang reencode news.db --model my-model"))
def reencode(library: LibraryArgument, model: ModelOption = None, compute: ComputeOption = "float32", as_json: JsonOption = False) -> None:
    """Encode every document of a library with another model.

    The library changes in one step at the end; until then it can be searched with the old model, and an interruption leaves it as it was.
    """
    from munjang.cli.watched import load_for_search
    from munjang.library.library import Library
    from munjang.models.progress import progress_bar

    queries, documents = load_for_search(model, compute=compute)
    with Library.open(library, create=False) as opened:
        before = opened.info()
        with progress_bar("reencode", before.documents, shown=True) as advance:
            opened.reencode(documents, query_encoder=queries, passage_characters=passage_length(documents), progress=advance)
        after = opened.info()
    if as_json:
        emit({"before": asdict(before), "after": asdict(after)})
    else:
        print_facts([("documents", f"{after.documents:,}"), ("model before", before.model), ("model now", after.model)])
