"""Small files to encode, and an output's bytes as one value to compare."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.bulk.run import encode_bulk

WORDS = "the rain sun cat dog sleep train book coffee river winter snow 비가 눈이 온다 겨울 날씨".split()  # noqa: SIM905


def sentences(count: int, *, seed: int = 1) -> list[str]:
    """Sentences of one to twelve words; some are there twice."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(count)]


def write_jsonl(path: Path, count: int, *, seed: int = 1) -> Path:
    rows = ({"id": f"r{number}", "text": text} for number, text in enumerate(sentences(count, seed=seed)))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def digest(output: Path) -> dict[str, str]:
    """The SHA-256 of everything that must not depend on who did the work."""
    files = [*sorted((output / "vectors").iterdir()), output / "rejected.jsonl"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_news(folder: Path) -> Path:
    """Write 90 rows with ids, and three that are broken."""
    path = write_jsonl(folder / "news.jsonl", 90)
    lines = path.read_text(encoding="utf-8").splitlines()
    for place, line in ((5, "{broken"), (40, '{"id": 1}'), (80, '{"id": 2, "text": 7}')):
        lines.insert(place, line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 rows with ids, and three that are broken; not to be changed."""
    return write_news(tmp_path_factory.mktemp("news"))


@pytest.fixture(scope="session")
def news_output(news: Path, tiny_bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("encoded") / "out"
    encode_bulk([news], output, model=tiny_bert_folder, shard_rows=20, keep_text=True, workers=1)
    return output


@pytest.fixture
def copy_output(news_output: Path) -> Callable[[Path], Path]:
    """Copy what `encode` makes of the news to a folder that may be changed: a worker takes a second to start."""
    return lambda output: Path(shutil.copytree(news_output, output))


@pytest.fixture
def encode(tiny_bert_folder: Path) -> Callable[..., Path]:
    """Run a small job in shards of 20 rows with one worker, unless told otherwise, and return its folder."""

    def run(
        source: Path, output: Path, *, workers: int = 1, threads: int = 1, dask: str | None = None, resume: bool = False, **more
    ) -> Path:
        settings = {"shard_rows": 20, "keep_text": True, **more}
        encode_bulk([source], output, model=tiny_bert_folder, **settings, workers=workers, threads=threads, dask=dask, resume=resume)
        return output

    return run


def find_listening() -> list[Any]:
    """Return the sockets on which this process and those below it listen; one that ends meanwhile listens to nothing."""
    psutil = pytest.importorskip("psutil")
    own, found = psutil.Process(), []
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [each for each in process.net_connections() if each.status == "LISTEN"]
    return found
