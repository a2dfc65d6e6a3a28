"""Write a Jupyter notebook beside every example, from its Python file.

    python examples/notebooks.py            write what has changed
    python examples/notebooks.py --check    write nothing, end with 1 if a notebook is stale

In: a file in the percent format: a docstring, then cells that begin with `# %%` or `# %% [markdown]`. Out: notebook JSON (nbformat 4.5), no
outputs, the same bytes every time. A notebook has no `__file__`; Jupyter starts it in its own folder, so `HERE` becomes the current one.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
MARK = "# %%"
MARKDOWN = "# %% [markdown]"
IN_FILE, IN_NOTEBOOK = "HERE = Path(__file__).parent", "HERE = Path.cwd()"


def examples() -> list[Path]:
    """Return the examples in their order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def notebook_text(source: str) -> str:
    """Return the notebook of an example's source."""
    cells = [_cell(number, kind, lines) for number, (kind, lines) in enumerate(_cells(source))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


def _cells(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the kind and the lines of each cell; the docstring is the first."""
    before, *rest = source.split(f"\n{MARK}")
    title, _, text = before.strip().strip('"').strip().partition("\n\n")
    yield "markdown", [f"# {title.rstrip('.')}", *(["", *text.splitlines()] if text else [])]
    for block in rest:
        lines = (MARK + block).strip().splitlines()
        if lines[0] == MARKDOWN:
            yield "markdown", [line.removeprefix("#").removeprefix(" ") for line in lines[1:]]
        else:
            yield "code", [line.replace(IN_FILE, IN_NOTEBOOK) for line in lines[1:]]


def _cell(number: int, kind: str, lines: list[str]) -> dict[str, Any]:
    whole = [line + "\n" for line in lines[:-1]] + lines[-1:]
    made: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number:02}", "metadata": {}, "source": whole}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def main() -> int:
    """Write stale notebooks, or say which are stale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 if a notebook is stale")
    options = parser.parse_args()
    wanted = {path.with_suffix(".ipynb"): notebook_text(path.read_text(encoding="utf-8")) for path in examples()}
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.name} is stale" if options.check else f"wrote {path.name}")
        if not options.check:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
