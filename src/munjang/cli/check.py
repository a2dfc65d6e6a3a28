"""`munjang check`: is everything in a library as it was written?"""

from __future__ import annotations

import typer

from munjang.cli.library_files import LibraryArgument
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, one_line
from munjang.errors import DamagedFile
from munjang.wording import count, plural

app = new_app()


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
