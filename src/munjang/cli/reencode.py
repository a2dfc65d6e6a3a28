"""`munjang reencode`: another model for a library, in one step."""

from __future__ import annotations

from dataclasses import asdict

from munjang.cli.info import model_text
from munjang.cli.library_files import LibraryArgument, PatienceOption, load_for
from munjang.cli.options import JsonOption, LibraryComputeOption, ModelOption, examples, new_app
from munjang.cli.show import emit, print_facts
from munjang.file_lock import PATIENCE
from munjang.models.progress import progress_bar

app = new_app()


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
