"""Run what pages tell to type, with the default model, and write what it prints into their `output` blocks, and into those of their
Korean versions, which tell to type the same.

    python -m website.outputs README.md docs/tutorials/*.md [--data ../shared/data]     run it from the project's root

Run it after the default model has changed. A page that needs a data set is left as it is where the set is missing. Lines that take
minutes are run too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from website.blocks import Line, Shown, shown, shown_files
from website.data import put_data

PROGRAM = Path(sys.executable).parent / "munjang"
WIDTH = "120"
"""Columns of the terminal whose output is shown."""


def outputs(page: str, folder: Path) -> list[str]:
    """Write a page's files into `folder`, run everything in it there, and return what its output blocks should show."""
    for name, text in shown_files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    printed = [(part, _printed(part, folder)) for part in shown(page)]
    return [text for part, text in printed if part.output]


def filled(page: str, texts: Sequence[str]) -> str:
    """Return a page with these texts in its output blocks.

    >>> filled("```sh\\nmunjang\\n```\\n\\n```output\\nold\\n```\\n", ["new\\n"])
    '```sh\\nmunjang\\n```\\n\\n```output\\nnew\\n```\\n'
    """
    made, done = "", 0
    places = [part.output for part in shown(page) if part.output]
    for place, text in zip(places, texts, strict=True):
        made += page[done : place.start] + text
        done = place.stop
    return made + page[done:]


def korean(path: Path) -> Path:
    """Return where a page's Korean version lies.

    >>> korean(Path("docs/tutorials/train.md")).as_posix(), korean(Path("README.md")).as_posix()
    ('docs/ko/tutorials/train.md', 'README.ko.md')
    """
    if path.parts[0] == "docs":
        return Path("docs", "ko", *path.parts[1:])
    return path.with_suffix(".ko.md")


def _printed(part: Shown, folder: Path) -> str:
    texts = [_run(line, folder) for line in part.lines if line.words[0] == "munjang"]
    if part.code:
        done = subprocess.run([sys.executable, "-c", part.code], cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603
        texts = [done.stdout]
    rows = [row.rstrip() for text in texts for row in text.splitlines()]
    return "".join(f"{row}\n" for row in rows if row)


def _run(line: Line, folder: Path) -> str:
    done = subprocess.run(  # noqa: S603 - a line of our own page
        [PROGRAM, *line.words[1:]], cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": WIDTH}
    )
    if done.returncode != line.exit_code:
        sys.exit(f"{line.text}\n  left with {done.returncode}: {done.stderr}")
    return done.stdout


def main() -> None:
    """Fill the pages named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    for path in options.pages:
        page = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as name:
            missing = put_data(path.name, options.data, Path(name))
            if missing:
                print(f"{path}: left as it is, {missing} is missing")
                continue
            texts = outputs(page, Path(name))
        for each in (path, korean(path)):
            each.write_text(filled(each.read_text(encoding="utf-8"), texts), encoding="utf-8")
            print(f"{each}: written")


if __name__ == "__main__":
    main()
