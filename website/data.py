"""Which tutorial needs which data set, and how its files get the names that the tutorial uses."""

from __future__ import annotations

import gzip
from pathlib import Path

FILES = {
    "korsts": {f"korsts/sts-{part}.tsv": f"korsts/sts-{part}.tsv.gz" for part in ("train", "dev", "test")},
    "korean-assembly-bills": {"bills.tsv": "korean-assembly-bills/bills_14x500.tsv.gz"},
}
"""Data set → the tutorial's name of a file, and where it lies under the data folder."""

NEEDED = {"train.md": "korsts", "evaluate.md": "korsts", "topics-of-bills.md": "korean-assembly-bills"}
"""A tutorial's file name → the data set that it needs."""


def put_data(page: str, data: Path, folder: Path, *, rows: int | None = None) -> str | None:
    """Unpack what a page needs into `folder`, the first `rows` rows of each file; return the name of what is missing, if anything is."""
    files = FILES[NEEDED[page]] if page in NEEDED else {}
    for name, source in files.items():
        if not (data / source).is_file():
            return str(data / source)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(data / source, "rt", encoding="utf-8", newline="\n") as packed:
            kept = packed.readlines() if rows is None else [line for _, line in zip(range(rows + 1), packed, strict=False)]
        (folder / name).write_text("".join(kept), encoding="utf-8", newline="\n")
    return None
