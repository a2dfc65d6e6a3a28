"""A process that works on a library until it is killed, and says what was acknowledged: one JSON line each, after the call has returned.

    python library_worker.py write LIBRARY SEED     add, update, remove and compact for ever
    python library_worker.py read LIBRARY SECONDS   search and compare, print what was wrong
    python library_worker.py hold LIBRARY SECONDS   hold the writer's lock
    python library_worker.py add LIBRARY COUNT      add so many documents one by one, beside other writers

Every document has one number in its id, text and metadata, so that a half-written one would show.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time

import numpy as np

from munjang.library.index_config import Tuning
from munjang.library.library import Library
from munjang.library.words import passage_words


class StubEncoder:
    """A text's hash seeds its vector, and a word's hash that of a token: the library keeps both."""

    name, dimension, fingerprint = "stub", 32, "stub-32"

    def encode(self, texts):
        seeds = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=32) for seed in seeds], dtype=np.float32).reshape(len(seeds), 32)

    def encode_with_tokens(self, texts, *, keep, skip=()):
        texts = list(texts)
        return self.encode(texts), [keep(self.encode(text.split()[:20])) for text in texts]

    def token_places(self, text, *, skip=()):
        return [(0, len(text)) for _ in text.split()[:20]]


def opened(path: str) -> Library:
    tuning = Tuning(batch_documents=8, cache_from=50, stale_part=0.2)
    return Library.open(path, StubEncoder(), analyser="bigrams", tuning=tuning, token_vectors="1bit")


def record(id: str, version: int) -> dict:
    return {"id": id, "text": f"document {id} version {version} " + "filler words here " * (version % 90), "version": version}


def say(**facts) -> None:
    print(json.dumps(facts), flush=True)


def write(path: str, seed: int) -> None:
    rng = random.Random(seed)
    library = opened(path)
    StubEncoder().encode(passage_words("imports", "bigrams+stems"))  # so that kills meet writes
    version = seed * 100_000
    while True:
        version += 1
        ids = [str(rng.randrange(60)) for _ in range(rng.randrange(1, 20))]
        what = rng.choice(["add", "add", "add", "update", "remove", "compact", "search"])
        known = {document.id for document in library.get(map(str, range(60)))}
        say(begin=what, ids=ids, version=version)
        if what == "add":
            library.add([record(id, version) for id in ids])
        elif what == "update":
            library.update([record(id, version) for id in ids if id in known])
        elif what == "remove":
            library.remove(ids[:5])
        elif what == "compact":
            library.compact()
        else:
            library.search("document 1", k=3)
        say(end=what)


def read(path: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    library = opened(path)
    searches, wrong, generation = 0, [], 0
    while time.monotonic() < end:
        for hit in library.search("document 7 version", k=5, by=None if searches % 2 == 0 else "meaning"):
            if f" {hit.id} version {hit.metadata['version']} " not in hit.text:
                wrong.append(hit.id)
        with library.store.snapshot():
            versions = {document.metadata["version"] for document in library.get(map(str, range(8)))}
            if len(versions) > 1:  # one batch always writes these eight together
                wrong.append(sorted(versions))
            if library.store.generation() < generation:
                wrong.append("back in time")
            generation = library.store.generation()
        searches += 1
    say(searches=searches, wrong=wrong)


def hold(path: str, seconds: float) -> None:
    with opened(path) as library, library.store.writer("hold"):
        say(held=True)
        time.sleep(seconds)


def add(path: str, count: float) -> None:
    with opened(path) as library:
        for number in range(int(count)):
            id, start = f"{os.getpid()}-{number}", time.monotonic()
            assert library.add([record(id, number)]).added == 1
            say(added=id, waited=round(time.monotonic() - start, 3))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        {"read": read, "hold": hold, "add": add}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))
