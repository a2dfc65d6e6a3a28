"""Write docs/reference from the code; with --check say whether it is up to date, and leave with 1 if not.

python -m website.reference [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from website.reference.pages import all_pages

FOLDER = Path(__file__).parents[2] / "docs/reference"


def main() -> None:
    """Write or check every page."""
    made = all_pages()
    stale = [name for name, text in made.items() if not (FOLDER / name).is_file() or (FOLDER / name).read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        print("\n".join(stale) or "up to date")
        sys.exit(1 if stale else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(made[name], encoding="utf-8")
        print(f"written: docs/reference/{name}")


if __name__ == "__main__":
    main()
