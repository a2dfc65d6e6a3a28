"""`munjang text`: files of documents → what is read from them, so that people can look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, note
from munjang.documents.blocks import DocumentError
from munjang.documents.read import SEPARATOR, read_document
from munjang.documents.reader_process import DocumentReader
from munjang.errors import InputError
from munjang.wording import count

app = new_app()


@app.command(epilog=examples("munjang text report.pdf", "munjang text *.hwp *.docx --json", "munjang text slides.pptx > slides.txt"))
def text(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="pdf, docx, pptx, xlsx, odt, html, md, epub, rtf, eml, hwp, hwpx (extra documents)."),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print the text of documents, as munjang add reads it.

    --json prints one line per section, with its page, slide or sheet, its headings, and its place in the file's text in characters.
    A file that cannot be read is named, and the others are printed.
    """
    broken = 0
    with DocumentReader() as reader:
        for name in files:
            if not Path(name).is_file():
                raise InputError(f"{name}: there is no such file")
            try:
                sections = read_document(name, reader=reader)
            except DocumentError as error:
                broken += 1
                note(f"{name}: {error}")
                continue
            if as_json:
                for number, section in enumerate(sections, start=1):
                    emit({"file": name, "section": number, **section.facts(), "text": section.text})
            else:
                print(SEPARATOR.join(section.text for section in sections), end="\n\n" if name != files[-1] else "\n")
    if broken:
        raise InputError(f"{count(broken, 'file')} of {len(files):,} could not be read")
