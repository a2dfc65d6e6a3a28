"""One way of keeping and searching texts, alone in its process. Called by beside_txtai.py; prints JSON.

python benchmarks/beside_txtai_worker.py munjang|"munjang int8"|txtai MODEL TASK.json FOLDER
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

CUT = 10

Search = Callable[[str], list[str]]
"""A question → the ids of the best texts."""


def munjang(model: str, texts: dict[str, str], place: Path, *, compute: str) -> tuple[float, Search]:
    """Put the texts into a library; return the seconds it took and how to ask."""
    from munjang.cli.load_model import load_for_search
    from munjang.library.library import Library

    queries, documents = load_for_search(model, compute="int8" if compute == "int8" else "float32")
    started = time.perf_counter()
    library = Library.open(place / "texts.db", documents, query_encoder=queries)
    library.add({"id": id, "text": text} for id, text in texts.items())
    library.prepare()
    return time.perf_counter() - started, lambda text: [hit.id for hit in library.search(text, k=CUT)]


def txtai(model: str, texts: dict[str, str], place: Path) -> tuple[float, Search]:
    """Put the texts into txtai's index and save it; return the seconds it took and how to ask."""
    from txtai import Embeddings

    index = Embeddings(path=model, hybrid=True, content=True)
    index.batchtransform(["warm"])
    started = time.perf_counter()
    index.index(list(texts.items()))
    index.save(str(place / "index"))
    return time.perf_counter() - started, lambda text: [hit["id"] for hit in index.search(text, CUT)]


def main() -> None:
    way, model, task_file, folder = sys.argv[1:]
    task = json.loads(Path(task_file).read_text(encoding="utf-8"))
    place = Path(folder, "kept")
    place.mkdir()
    seconds, search = txtai(model, task["texts"], place) if way == "txtai" else munjang(model, task["texts"], place, compute=way[8:])
    answers, times = {}, []
    for id, question in task["questions"].items():
        started = time.perf_counter()
        answers[id] = search(question)
        times.append(time.perf_counter() - started)
    facts = {
        "add_s": seconds,
        "question_ms": 1000 * statistics.median(times),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "disk_mb": sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6,
        "answers": answers,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
