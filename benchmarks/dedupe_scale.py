"""Near-duplicates among millions of vectors, out of core: `munjang pairs FILE.npy --dedupe`, in a process of its own.

    python benchmarks/scale_data.py FOLDER
    python benchmarks/dedupe_scale.py FOLDER --rows 5000000 [--threshold 0.95] [--exact] [--json FILE]

Rows are real vectors moved by noise (scale_data.py), in float16; one in a hundred is a copy of an earlier row, moved once more to a cosine
between 0.955 and 0.995. The noise of copies is drawn as real vectors differ, which is harder than noise that points anywhere.

Recall is the part of the planted copies of which the original and the copy do not both stay. What was dropped is checked: the cosine with
the row that stays, on 20,000 of them. Rows/s are of wall time and of processor seconds; peak memory is that of the process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from scale_data import BLOCK, Tiled

COPIES = 0.01
WORKER = r"""
import json, re, resource, sys, time
from pathlib import Path
import numpy as np
from munjang import dedupe_output
place, threshold, exact, work, out = sys.argv[1:]
began = time.perf_counter()
last = [began, 0]
def progress(rows):
    last[1] += rows
    if time.perf_counter() - last[0] > 20:
        last[0] = time.perf_counter()
        print(f"{last[1]:,} of 3 passes, {last[0] - began:.0f} s, cpu {time.process_time():.0f} s", file=sys.stderr, flush=True)
found = dedupe_output(place, threshold=float(threshold), exact=exact == "exact", work=Path(work), progress=progress)
about = resource.getrusage(resource.RUSAGE_SELF)
peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) // 1024  # ru_maxrss would count what the parent held
np.savez(out, row=found.row_G, kept=found.kept_G, score=found.score_G)
print(json.dumps({"rows": found.rows, "dropped": len(found.row_G), "wall_s": round(time.perf_counter() - began, 1),
    "cpu_s": round(about.ru_utime + about.ru_stime, 1), "peak_mb": peak}))
"""


def plant(folder: Path, rows: int) -> tuple[Path, np.ndarray]:
    """Write the vectors, unless they are there; return their file, and the original and the copy of each planted pair."""
    path = folder / f"planted-{rows}.npy"
    pairs_path = folder / f"planted-{rows}.pairs.npy"
    if pairs_path.is_file():
        return path, np.load(pairs_path)
    tiled, random = Tiled(folder), np.random.default_rng(7)
    noise = Tiled(folder, seed=11)
    waiting: list[tuple[int, np.ndarray]] = []
    pairs: list[tuple[int, int]] = []
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(rows, tiled.real_ND.shape[1]))
    for number, (_, vectors_ND) in enumerate(tiled.blocks(rows)):
        count = min(len(waiting), round(2 * COPIES * len(vectors_ND)) if number % 2 else 0)
        places = random.choice(len(vectors_ND), count, replace=False)
        for place, moved_D in zip(places.tolist(), noise.noise(number, count), strict=True):
            row, original_D = waiting.pop(int(random.integers(len(waiting))))
            cosine = random.uniform(0.955, 0.995)
            moved_D -= (moved_D @ original_D) * original_D
            copy_D = original_D * cosine + moved_D / np.linalg.norm(moved_D) * np.sqrt(1 - cosine**2)
            vectors_ND[place] = copy_D
            pairs.append((row, number * BLOCK + place))
        others = np.setdiff1d(np.arange(len(vectors_ND)), places)
        chosen = random.choice(others, min(len(others), round(1.05 * COPIES * len(vectors_ND))), replace=False)
        waiting += [(number * BLOCK + place, vectors_ND[place].copy()) for place in chosen.tolist()]
        out[number * BLOCK : number * BLOCK + len(vectors_ND)] = vectors_ND
    out.flush()
    del out
    np.save(pairs_path, np.array(pairs))
    return path, np.array(pairs)


def check(path: Path, dropped: Any, pairs: np.ndarray) -> dict[str, Any]:
    """Return recall of what was planted, and the least cosine of what was dropped with what stays."""
    rows = np.load(path, mmap_mode="r")
    gone = np.zeros(len(rows), dtype=bool)
    gone[dropped["row"]] = True
    some = np.random.default_rng(0).permutation(len(dropped["row"]))[:20_000]
    a, b = (rows[dropped[name][some]].astype(np.float64) for name in ("row", "kept"))
    cosine = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return {
        "planted": len(pairs),
        "recall": round(float((gone[pairs[:, 0]] | gone[pairs[:, 1]]).mean()), 5),
        "copies_dropped": round(float(gone[pairs[:, 1]].mean()), 5),
        "least_cosine_dropped": round(float(cosine.min()), 6) if len(some) else None,
        "kept_rows_that_went": int(gone[dropped["kept"]].sum()),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--rows", type=int, default=5_000_000)
    options.add_argument("--threshold", type=float, default=0.95)
    options.add_argument("--exact", action="store_true")
    options.add_argument("--plant", action="store_true", help="Only make the vectors.")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    path, pairs = plant(chosen.folder, chosen.rows)
    if chosen.plant:
        return
    out, work = chosen.folder / "dropped.npz", chosen.folder / f"dedupe-{chosen.rows}.work"
    command = [sys.executable, "-c", WORKER, path, str(chosen.threshold), "exact" if chosen.exact else "fast", work, out]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    found |= {"threshold": chosen.threshold, "exact": chosen.exact, **check(path, np.load(out), pairs)}
    found |= {"rows_per_s": round(chosen.rows / found["wall_s"]), "rows_per_cpu_s": round(chosen.rows / found["cpu_s"])}
    print(json.dumps(found), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
