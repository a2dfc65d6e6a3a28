"""Processor seconds to read the same documents: Munjang, parsers in their process, beside markitdown.

    python -m benchmarks.documents [--rounds 20]          needs the extra documents, and markitdown[all] for the other side

Files are the fixtures that both read. Each side runs in a process of its own; children count. The first round holds the imports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "tests/documents/fixtures"
NAMES = ("report.docx", "report.epub", "report.html", "report.md", "report.pdf", "sheets.xlsx", "slides.pptx")

SIDES = {
    "munjang": (
        "from munjang.documents.read import read_document\nfrom munjang.documents.reader_process import DocumentReader\n"
        "reader = DocumentReader()\nread = lambda path: read_document(path, reader=reader)\nend = reader.close\n"
    ),
    "markitdown": "from markitdown import MarkItDown\nreader = MarkItDown()\nread = reader.convert_local\nend = lambda: None\n",
}
MEASURE = """
import json, os, sys
def used():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
{setup}
for _ in range({rounds}):
    for path in {paths!r}:
        read(path)
end()
print(json.dumps(used()))
"""


def measure(side: str, rounds: int, python: str) -> float:
    """Return the processor seconds of reading all files so many times, imports included."""
    code = MEASURE.format(setup=SIDES[side], rounds=rounds, paths=[str(FIXTURES / name) for name in NAMES])
    return float(json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout))


def main() -> None:
    """Print a table as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--peer-python", default=sys.executable, help="A Python that has markitdown.")
    options = parser.parse_args()
    found = {}
    for side, python in (("munjang", sys.executable), ("markitdown", options.peer_python)):
        once, many = measure(side, 1, python), measure(side, options.rounds + 1, python)
        found[side] = {"first_round": round(once, 3), "each_round": round((many - once) / options.rounds, 4)}
    ratios = {name: round(found["munjang"][name] / found["markitdown"][name], 3) for name in ("first_round", "each_round")}
    print(json.dumps({"files": len(NAMES), **found, "ratio": ratios}))


if __name__ == "__main__":
    main()
