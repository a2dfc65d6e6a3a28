"""Mutated documents: every file is read, or named as one that cannot be; the process that asks lives on and every limit is kept.

    python -m tests.hostile.mutate_documents --first 0 --files 20000 --minutes 13 --log campaign.jsonl

Each file is made from its number alone, so that a campaign goes on where it ended (`--first`), and a file that breaks something can be made
again. Every 500 files and at the end a line of JSON says which numbers were read, with what outcome; with --log it is added to a file.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.documents.conftest import FIXTURES
from tests.documents.fixtures.write_hwp5 import write_hwp5

from munjang.documents.blocks import FORMATS, DocumentError
from munjang.documents.reader_process import DocumentReader
from munjang.limits import DOCUMENT_LIMITS

LIMITS = replace(DOCUMENT_LIMITS, seconds=10.0, memory_bytes=2**30)
SOURCES = sorted(path for path in FIXTURES.iterdir() if (path.suffix in FORMATS and path.suffix != ".md") or path.name == "report.md")
ZIPPED = (".docx", ".pptx", ".xlsx", ".odt", ".epub", ".hwpx")


def mutate(raw: bytes, suffix: str, chance: random.Random) -> bytes:
    """Return a file with some of its bytes changed, cut, doubled or moved; in half of those that are packed, within what is packed."""
    if chance.random() < 0.5:
        if suffix in ZIPPED:
            return mutate_member(raw, chance)
        if suffix == ".pdf":
            return mutate_stream(raw, chance)
        if suffix == ".hwp":
            return write_hwp5(
                [("h1", "가"), ("p", "나" * 50), ("table", [["다", "라"]] * 3)], change=lambda body: mutate_bytes(body, chance)
            )
    return mutate_bytes(raw, chance)


def mutate_member(raw: bytes, chance: random.Random) -> bytes:
    """Change one file of an archive."""
    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as source, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target:
        chosen = chance.choice(source.namelist())
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, mutate_bytes(content, chance) if name == chosen and content else content)
    return output.getvalue()


def mutate_stream(raw: bytes, chance: random.Random) -> bytes:
    """Change one packed stream of a PDF; PDFium finds the others again."""
    streams = list(re.finditer(rb"/FlateDecode>>\s*stream\r?\n", raw))
    start = chance.choice(streams).end()
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(raw[start:])
    rest = unpacker.unused_data
    return raw[:start] + zlib.compress(mutate_bytes(content or b"x", chance)) + rest


NUMBERS = (b"0", b"-1", b"99999", b"999999999999", b"1e99", b"9" * 400)


def mutate_bytes(raw: bytes, chance: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(chance.choice((1, 1, 4, 32))):
        at, kind = chance.randrange(len(changed)), chance.randrange(7)
        length = chance.choice((1, 2, 8, 256))
        if kind == 0:
            changed[at] = chance.randrange(256)
        elif kind == 1:
            changed[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length] * chance.choice((1, 50))
        elif kind == 4:
            changed[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"9999"))
        elif kind == 5 and (number := re.compile(rb"\d+").search(changed, at)) is not None:
            changed[number.start() : number.end()] = chance.choice(NUMBERS)
        elif kind == 6 and (tag := re.compile(rb"<[^>]{1,200}>").search(changed, at)) is not None:
            changed[at:at] = tag[0] * chance.choice((1, 2, 300))
        if not changed:
            return b"x"
    return bytes(changed)


@dataclass
class Campaign:
    """What became of mutated files."""

    outcomes: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    """Seconds, and the number of the file."""
    wrong: list[str] = field(default_factory=list)
    """Files that broke a promise: an answer without text, a failure without a name, or a limit that was not kept."""

    def facts(self) -> dict[str, Any]:
        """Return everything, as JSON can hold it."""
        listed = {"files": sum(self.outcomes.values()), "outcomes": dict(self.outcomes.most_common()), "formats": dict(self.formats)}
        return {**listed, "slowest": [round(self.slowest[0], 2), self.slowest[1]], "wrong": self.wrong}


LATE = 10.0
"""Seconds beyond the limit that ending a process may take on a busy machine."""


def read_mutated(numbers: Iterable[int], folder: Path, campaign: Campaign) -> Iterable[int]:
    """Read the files of these numbers, and yield each number when its file is done."""
    raws = {path: path.read_bytes() for path in SOURCES}
    with DocumentReader(LIMITS) as reader:
        for number in numbers:
            source = SOURCES[number % len(SOURCES)]
            path = folder / f"mutated{source.suffix}"
            path.write_bytes(mutate(raws[source], source.suffix, random.Random(number)))
            _read(reader, path, number, campaign)
            yield number


def _read(reader: DocumentReader, path: Path, number: int, campaign: Campaign) -> None:
    began = time.monotonic()
    try:
        parsed = reader.read(path)
    except DocumentError as error:
        outcome = re.sub(r"\d[\d,.]*", "#", str(error).partition("(")[0].partition("\n")[0]).strip()[:60]
        if not outcome:
            campaign.wrong.append(f"file {number}: a failure that says nothing")
    else:
        outcome = "read"
        if not parsed.blocks or not all(block.text.strip() for block in parsed.blocks):
            campaign.wrong.append(f"file {number}: a block without text")
    took = time.monotonic() - began
    if took > LIMITS.seconds + LATE:
        campaign.wrong.append(f"file {number}: took {took:.1f} s")
    campaign.slowest = max(campaign.slowest, (took, number))
    campaign.outcomes[outcome] += 1
    campaign.formats[path.suffix] += 1


def main() -> int:
    """Run a campaign over a range of numbers, or until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=13.0)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    campaign, end, number = Campaign(), time.monotonic() + 60 * options.minutes, options.first - 1
    with tempfile.TemporaryDirectory() as folder:
        for number in read_mutated(range(options.first, options.first + options.files), Path(folder), campaign):
            if (number + 1) % 500 == 0:
                print(json.dumps({"next": number + 1, "wrong": len(campaign.wrong)}), flush=True)
            if time.monotonic() > end:
                break
    import resource  # which Windows has not

    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    line = json.dumps({"first": options.first, "next": number + 1, **campaign.facts(), "largest_process_mib": largest}, ensure_ascii=False)
    print(line)
    if options.log is not None:
        with options.log.open("a", encoding="utf-8") as log:
            log.write(line + "\n")
    return 1 if campaign.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
