"""Topics of a million texts whose vectors are read in a stream, and what the stream costs in quality: `munjang topics DIR`.

    python benchmarks/scale_data.py FOLDER
    python benchmarks/topics_scale.py FOLDER --rows 1000000 [--only stream,bills,bertopic] [--bills FILE --bills-vectors FILE.npy]

`stream`: vectors are real ones moved by noise, texts real ones of the same kind (scale_data.py); topics are found in 20,000 texts, all
rows are assigned and their words counted, in a process of its own. `bills`: 7,000 bills of 14 committees (benchmarks/topics.py), in memory
and in a stream with samples of several sizes; NMI with the committees, and with the labels found in memory. `bertopic`: 100,000 rows of the
stream, by Munjang and by the Python that MUNJANG_TOPIC_PEERS names, with the same vectors, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scale_data import Tiled

STREAM = r"""
import json, re, resource, sys, time
from pathlib import Path
import numpy as np
from munjang import assign_topics, fit_topics_stream
folder, rows, block = Path(sys.argv[1]), int(sys.argv[2]), 16_384
sources = np.load(folder / f"tiled-{rows}.sources.npy")
texts = [json.loads(line) for line in (folder / "real.jsonl").read_text(encoding="utf-8").splitlines()]
def read():
    for at in range(0, rows, block):
        vectors = np.load(folder / f"tiled-{rows}.npy", mmap_mode="r")[at : at + block]
        yield [texts[source] for source in sources[at : at + block]], np.asarray(vectors, dtype=np.float32)
def spent():
    about = resource.getrusage(resource.RUSAGE_SELF)
    cpu = about.ru_utime + about.ru_stime
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) // 1024  # ru_maxrss would count what the parent held
    return {"wall_s": round(time.perf_counter() - began, 1), "cpu_s": round(cpu, 1), "peak_mb": peak}
began = time.perf_counter()
model = fit_topics_stream(read)
fitted = spent()
none = sum(int((assign_topics(model, part, vectors=vectors).labels < 0).sum()) for part, vectors in read())
facts = {"rows": rows, "topics": len(model.topics), "outliers": model.outliers, "assigned_without": none, "npmi": round(model.coherence, 4)}
largest = [topic.name for topic in model.topics[:5]]
print(json.dumps({**facts, "fit": fitted, "fit_and_assign": spent(), "largest": largest}, ensure_ascii=False))
"""
MEMORY = r"""
import json, re, sys, time
from pathlib import Path
import numpy as np
way, folder, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
sources = np.load(folder / f"tiled-{rows}.sources.npy")
texts = [json.loads(line) for line in (folder / "real.jsonl").read_text(encoding="utf-8").splitlines()]
texts = [texts[source] for source in sources]
vectors = np.load(folder / f"tiled-{rows}.npy").astype(np.float32)
began = time.perf_counter()
cpu = time.process_time()
if way == "bertopic":
    from bertopic import BERTopic
    labels, _ = BERTopic(language="multilingual").fit_transform(texts, vectors)
    found = {"topics": len(set(labels)) - (-1 in labels), "outliers": round(labels.count(-1) / len(labels), 4)}
else:
    from munjang import fit_topics, fit_topics_stream
    block = 16_384
    if way == "stream":
        model = fit_topics_stream(lambda: ((texts[at : at + block], vectors[at : at + block]) for at in range(0, rows, block)))
    else:
        model = fit_topics(texts, vectors=vectors)
    found = {"topics": len(model.topics), "outliers": round(model.outliers / rows, 4)}
peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) // 1024
print(json.dumps({"way": way, "rows": rows, **found, "wall_s": round(time.perf_counter() - began, 1),
    "cpu_s": round(time.process_time() - cpu, 1), "peak_mb": peak}))
"""


def make_rows(folder: Path, rows: int) -> None:
    """Write so many vectors in float16 and which text each has, unless they are there."""
    if (folder / f"tiled-{rows}.sources.npy").is_file():
        return
    tiled = Tiled(folder)
    out = np.lib.format.open_memmap(folder / f"tiled-{rows}.npy", mode="w+", dtype=np.float16, shape=(rows, tiled.real_ND.shape[1]))
    sources, at = np.empty(rows, dtype=np.int64), 0
    for source_N, vectors_ND in tiled.blocks(rows):
        out[at : at + len(source_N)], sources[at : at + len(source_N)] = vectors_ND, source_N
        at += len(source_N)
    out.flush()
    np.save(folder / f"tiled-{rows}.sources.npy", sources)


def run_worker(code: str, *arguments: Any, python: str = sys.executable) -> dict[str, Any]:
    """Run a worker and return what it says."""
    done = subprocess.run([python, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found, ensure_ascii=False), flush=True)
    return found


def compare_bills(path: Path, vectors_path: Path) -> list[dict[str, Any]]:
    """Return the agreement of topics found in memory and in a stream with committees and with each other."""
    from sklearn.metrics import normalized_mutual_info_score as agreement

    from munjang import assign_topics, fit_topics, fit_topics_stream
    from topics import bills

    texts, committees = bills(path)
    vectors = np.load(vectors_path).astype(np.float32)
    held = fit_topics(texts, vectors=vectors)
    rows = [{"way": "memory", "topics": len(held.topics), "nmi": round(float(agreement(committees, held.labels)), 4)}]
    print(json.dumps(rows[0]), flush=True)
    order = np.random.default_rng(0).permutation(len(texts))
    for sample, places in ((7_000, np.arange(len(texts))), (7_000, order), (3_500, np.arange(len(texts))), (3_500, order), (2_000, order)):
        some, their = [texts[place] for place in places], vectors[places]
        read = partial(read_blocks, some, their)
        found = fit_topics_stream(read, sample=sample)
        labels = assign_topics(found, texts, vectors=vectors).labels
        rows.append(
            {
                "way": f"stream, sample {sample:,}" + (", shuffled" if places is order else ""),
                "topics": len(found.topics),
                "outliers": found.outliers,
                "nmi": round(float(agreement(committees, labels)), 4),
                "with_memory": round(float(agreement(held.labels, labels)), 4),
                "labels": hash(tuple(labels.tolist())) % 10_000,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def read_blocks(texts: list[str], vectors: np.ndarray, size: int = 1_000) -> Any:
    """Yield texts and vectors in blocks."""
    return ((texts[at : at + size], vectors[at : at + size]) for at in range(0, len(texts), size))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--peer-rows", type=int, default=100_000)
    options.add_argument("--only", default="stream,bills,bertopic")
    options.add_argument("--bills", type=Path)
    options.add_argument("--bills-vectors", type=Path)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    parts, results = chosen.only.split(","), {}
    if "bills" in parts:
        from topics import DATA

        results["bills"] = compare_bills(chosen.bills or DATA, chosen.bills_vectors)
    if "stream" in parts:
        make_rows(chosen.folder, chosen.rows)
        results["stream"] = run_worker(STREAM, chosen.folder, chosen.rows)
    if "bertopic" in parts:
        make_rows(chosen.folder, chosen.peer_rows)
        results["peers"] = [run_worker(MEMORY, way, chosen.folder, chosen.peer_rows) for way in ("stream", "memory")]
        if peer := os.environ.get("MUNJANG_TOPIC_PEERS"):
            results["peers"].append(run_worker(MEMORY, "bertopic", chosen.folder, chosen.peer_rows, python=peer))
    if chosen.json:
        chosen.json.write_text(json.dumps(results, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
