"""The figures of the last runs (build/trust) → the table in docs/reliability.md.

python tests/trust/report.py            writes the table
python tests/trust/report.py --check    exit code 1 if a figure is bad or a promise was never tried
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FIGURES = ROOT / "build" / "trust"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def read() -> list[dict]:
    """Return every figure, by promise and variant; of a promise tried at both lengths the longer run counts."""
    found: dict[tuple[str, str, str], dict] = {}
    for path in sorted(FIGURES.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        key = (facts["promise"], facts["variant"], facts["test"])
        if key not in found or facts["cases"] > found[key]["cases"]:
            found[key] = facts
    return [found[key] for key in sorted(found)]


def table(figures: list[dict]) -> str:
    """Return the figures as a table of Markdown."""
    lines = ["| promise | of | tried | bad | what was seen | test |", "|---|---|---|---|---|---|"]
    for each in figures:
        cells = (each["promise"], each["variant"] or "–", f"{each['cases']:,}", str(each["bad"]), each["notes"] or "–")
        lines.append(f"| {' | '.join(cells)} | `{each['test'].removeprefix('tests/')}` |")
    dates = sorted({each["date"] for each in figures})
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    where = f"{platform.system()} {platform.machine()}, {cores} cores, Python {platform.python_version()}"
    return "\n".join([f"Seen on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; {where}.", "", *lines])


def main() -> int:
    figures = read()
    if not figures:
        print(f"{FIGURES}: holds no figures\n  run ./run test or ./run slow first", file=sys.stderr)
        return 2
    if "--check" not in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(figures)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return int(any(each["bad"] for each in figures))


if __name__ == "__main__":
    sys.exit(main())
