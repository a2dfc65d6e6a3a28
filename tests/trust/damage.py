"""A file → the same file damaged, in one of the ways in which disks, copies and attackers damage files."""

from __future__ import annotations

import os
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

HUGE = (2**64 - 1, 2**63 - 1, 2**63, 2**62, 2**40, 2**32 - 1, 2**31 - 1, 2**31)


def flip_bits(raw: bytes, chance: random.Random) -> bytes:
    made = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64))):
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def truncate(raw: bytes, chance: random.Random) -> bytes:
    return raw[: chance.choice((0, 1, 7, 8, chance.randrange(len(raw)), len(raw) - 1))]


def extend(raw: bytes, chance: random.Random) -> bytes:
    return raw + chance.choice((b"\0" * 4_096, chance.randbytes(100), raw))


def splice(raw: bytes, chance: random.Random) -> bytes:
    """Copy one part over another."""
    size = chance.randrange(1, min(len(raw), 8_192) + 1)
    source, target = chance.randrange(len(raw) - size + 1), chance.randrange(len(raw) - size + 1)
    return raw[:target] + raw[source : source + size] + raw[target + size :]


def zero(raw: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(raw)), chance.choice((1, 16, 512, 4_096))
    part = raw[at : at + size]
    return raw[:at] + bytes(len(part)) + raw[at + size :]


def cut_out(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + raw[at + chance.choice((1, 2, 8, 100)) :]


def huge_length(raw: bytes, chance: random.Random) -> bytes:
    """Write a huge number where a length may stand: at the beginning, at the end, or anywhere."""
    size = chance.choice((4, 8))
    number = (chance.choice(HUGE) % 2 ** (8 * size)).to_bytes(size, chance.choice(("little", "big")))
    at = chance.choice((0, 8, max(len(raw) - 8, 0), max(len(raw) - 12, 0), chance.randrange(len(raw)) & ~3))
    return raw[:at] + number + raw[at + size :]


def huge_digits(raw: bytes, chance: random.Random) -> bytes:
    """Make a number written in digits huge, negative or no number, as in JSON headers."""
    found = list(re.finditer(rb"\d+", raw[:200_000]))
    if not found:
        return flip_bits(raw, chance)
    place = chance.choice(found)
    digits = chance.choice((b"9" * 5_000, b"99999999999", b"-1", b"1e999", b"0", b"null", b'"x"', b"[1]", b"18446744073709551616"))
    return raw[: place.start()] + digits + raw[place.end() :]


def random_bytes(raw: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(min(len(raw), 10_000))


WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bits, flip_bits, flip_bits, truncate, extend, splice, zero, cut_out, huge_length, huge_digits, random_bytes,
)  # fmt: skip


def regions(library: Path) -> dict[str, list[int]]:
    """Return the pages of each table and index of a library's file, counted from 0, and of all inner pages together."""
    with closing(sqlite3.connect(library)) as connection:
        found = connection.execute("SELECT name, pagetype, pageno - 1 FROM dbstat").fetchall()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    assert not free, "compact the library first"
    pages: dict[str, list[int]] = {"inner pages": [page for _, kind, page in found if kind == "internal"]}
    for name, _, page in found:
        pages.setdefault(name, []).append(page)
    return pages


def flip_in_region(path: Path, pages: list[int], seed: int) -> str:
    """Flip one bit in one of these pages of a library; the file's times stay as they were, as when a disk forgets."""
    chance, before = random.Random(seed), path.stat()
    raw = bytearray(path.read_bytes())
    page_bytes = int.from_bytes(raw[16:18], "big")
    at, bit = chance.choice(pages) * page_bytes + chance.randrange(page_bytes), chance.randrange(8)
    raw[at] ^= 1 << bit
    path.write_bytes(raw)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"bit {bit} of byte {at}"


def damage(folder: Path, seed: int) -> str:
    """Damage one file of a folder, never the same way twice; return what was done."""
    chance = random.Random(seed)
    path = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size))
    before, way = path.read_bytes(), chance.choice(WAYS)
    after = way(before, chance)
    if after == before:
        way, after = flip_bits, flip_bits(before, random.Random(seed + 1))
    if not after and path.suffix == ".db":  # an empty file is where a new library is made
        after = before[:1]
    times = path.stat()
    path.write_bytes(after)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return f"{way.__name__} of {path.relative_to(folder).as_posix()}"
