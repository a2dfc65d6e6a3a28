"""The assembly's bills → text to adapt on, titles with their texts, triplets to choose by, and a retrieval task to score by.

    python recipes/adapt-bills/prepare.py ../shared/data/korean-assembly-bills/bills_14x500.tsv.gz runs/bills

Bills are parted by a hash of their id: 80 % to adapt on (without their committees), 10 % dev, 10 % test. Committee retrieval: a test bill
is the query, the bills of the 80 % are the corpus, those of its committee are right. Titles with their texts are those of the 80 %. Dev
triplets: a dev bill, one of its committee, one of another, both from the 80 %.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from munjang.text.readers import read_rows

SEED = 11


@dataclass(frozen=True)
class Bill:
    """One bill; its title is not searched with, since titles repeat the law's name and make the task easy."""

    id: str
    committee: str
    title: str
    text: str

    @property
    def part(self) -> Literal["train", "dev", "test"]:
        """Where the bill belongs, now and in any later run."""
        tenth = hashlib.sha256(self.id.encode()).digest()[0] % 10
        return "dev" if tenth == 0 else "test" if tenth == 1 else "train"


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, making the folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main(source: Path, target: Path) -> None:
    """Write all files."""
    rows = [row.values for row in read_rows(source)]
    bills = [Bill(row["bill_id"], row["committee"], " ".join(row["title"].split()), " ".join(row["text"].split())) for row in rows]
    parts = {name: [bill for bill in bills if bill.part == name] for name in ("train", "dev", "test")}
    write_lines(target / "train.txt", (bill.text for bill in parts["train"]))
    write_lines(target / "titles.tsv", ["title\ttext", *(f"{bill.title}\t{bill.text}" for bill in parts["train"])])
    chance = random.Random(SEED)
    triplets = ["anchor\tpositive\tnegative"]
    for bill in parts["dev"]:
        alike = [other for other in parts["train"] if other.committee == bill.committee]
        unlike = [other for other in parts["train"] if other.committee != bill.committee]
        triplets.append(f"{bill.text}\t{chance.choice(alike).text}\t{chance.choice(unlike).text}")
    write_lines(target / "dev.tsv", triplets)
    task = target / "committees"
    write_lines(task / "corpus.jsonl", (json.dumps({"_id": bill.id, "text": bill.text}, ensure_ascii=False) for bill in parts["train"]))
    write_lines(task / "queries.jsonl", (json.dumps({"_id": bill.id, "text": bill.text}, ensure_ascii=False) for bill in parts["test"]))
    right = (f"{bill.id}\t{other.id}\t1" for bill in parts["test"] for other in parts["train"] if other.committee == bill.committee)
    write_lines(task / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore", *right])
    print(f"{', '.join(f'{len(found):,} {name}' for name, found in parts.items())}; files in {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
