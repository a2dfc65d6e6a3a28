"""`munjang add`: files of texts → documents in a library."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.library_files import LibraryArgument, PatienceOption, open_with_model
from munjang.cli.options import (
    Columns,
    JsonOption,
    ModelChoice,
    examples,
    new_app,
)
from munjang.cli.row_files import no_text
from munjang.cli.show import emit, note, print_facts
from munjang.errors import MissingExtra
from munjang.file_lock import PATIENCE

if TYPE_CHECKING:
    from munjang.library.library import Library

app = new_app()


@app.command(
    epilog=examples(
        "munjang add news.db news.csv",
        "munjang add news.db 2024.jsonl 2025.jsonl --text-column body --id-column url",
        "munjang add notes.db notes/",
        "munjang add papers.db papers.jsonl --late",
        "munjang add news.db vectors/  (a folder of munjang bulk: nothing is encoded again)",
        "cat lines.txt | munjang add lines.db -",
    )
)
def add(
    library: LibraryArgument,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help='txt (one text per line), csv, tsv, jsonl, json, parquet; a folder; "-" is standard input.'),
    ],
    *,
    columns: Columns,
    passage_characters: Annotated[
        int | None, typer.Option(min=50, help="Split longer documents into passages of this many characters (new libraries only).")
    ] = None,
    late: Annotated[
        bool,
        typer.Option("--late", help="Keep a vector for every token too, which re-ranks searches (new libraries only)."),
    ] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Count broken lines and go on.")] = False,
    chosen_model: ModelChoice,
    patience: PatienceOption = PATIENCE,
    as_json: JsonOption = False,
) -> None:
    """Add documents to a library or update it.

    Only new and changed texts are encoded. Each batch is on disk before the next begins; the same command continues an interrupted add.
    """
    from munjang.cli.bulk_library import made_with, read_with_vectors
    from munjang.models.progress import progress_bar
    from munjang.text.records import BadLines

    bad = BadLines() if skip_bad else None
    bulk_model, made = made_with(files)
    with open_with_model(
        library,
        chosen_model.model or bulk_model,
        compute=chosen_model.compute,
        create=True,
        passage_characters=passage_characters,
        new=made,
        patience=patience,
        token_vectors="1bit" if late else None,
    ) as opened:
        try:
            with progress_bar("add", None, shown=True) as advance:
                report = opened.add(read_with_vectors(opened, files, columns, bad=bad), progress=advance, bad=bad)
            if not report.records:
                raise no_text(files, bad)
        except BaseException:
            opened.discard_new()  # a first add that stores nothing leaves no library behind
            raise
        _prepare(opened)
        total = opened.info().documents
    for message in bad.first if bad else ():
        note(f"skipped {message}")
    skipped = bad.count if bad else 0
    if as_json:
        emit({**asdict(report), "seconds": round(report.seconds, 3), "documents": total, "skipped": skipped})
        return
    print_facts(
        [
            ("added", f"{report.added:,}"),
            ("changed", f"{report.changed:,}"),
            ("other metadata", f"{report.relabelled:,}"),
            ("unchanged", f"{report.unchanged:,}"),
            *([("same id twice", f"{report.replaced:,} (the last one counts)")] if report.replaced else []),
            ("skipped", f"{skipped:,}"),
            ("documents now", f"{total:,}"),
            ("seconds", f"{report.seconds:.2f} ({report.records / max(report.seconds, 1e-9):,.0f} records/s)"),
        ]
    )


def _prepare(library: Library) -> None:
    try:
        library.prepare()
    except MissingExtra as error:
        note(f"searching stays exact: {error}")
