"""Near-duplicates among texts by semhash (PyPI), beside ours on the same vectors: each in a process of its own, one after the other.

    python benchmarks/dedupe_scale.py FOLDER --rows 1000000 --plant
    MUNJANG_SEMHASH=…/bin/python python benchmarks/dedupe_semhash.py FOLDER --rows 500000 --of 1000000

The rows are the first ones of the planted file. semhash is handed an encoder that knows their vectors, so neither side encodes. Recall is
that of planted pairs whose both rows are among them, as in dedupe_scale.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

MUNJANG = """
found = dedupe_output(folder / "first.npy", threshold=threshold)
gone = found.row_G
"""
SEMHASH = """
class Known:
    def encode(self, inputs, **_):
        return vectors[[int(text) for text in inputs]].astype(np.float32)
index = SemHash.from_records([str(row) for row in range(len(vectors))], model=Known())
found = index.self_deduplicate(threshold=threshold)
gone = np.array(sorted(int(each.record) for each in found.filtered), dtype=np.int64)
"""
FRAME = r"""
import json, re, resource, sys, time
from pathlib import Path
import numpy as np
{imports}
folder, threshold = Path(sys.argv[1]), float(sys.argv[2])
vectors = np.load(folder / "first.npy", mmap_mode="r")
began = time.perf_counter()
{body}
about = resource.getrusage(resource.RUSAGE_SELF)
peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) // 1024  # ru_maxrss would count what the parent held
np.save(folder / "gone.npy", gone)
print(json.dumps({{"dropped": len(gone), "wall_s": round(time.perf_counter() - began, 1),
    "cpu_s": round(about.ru_utime + about.ru_stime, 1), "peak_mb": peak}}))
"""


def measure(python: str, imports: str, body: str, folder: Path, threshold: float, pairs: np.ndarray) -> dict[str, Any]:
    """Run one way and say what it found."""
    code = FRAME.format(imports=imports, body=body)
    done = subprocess.run([python, "-c", code, folder, str(threshold)], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    gone = np.zeros(len(np.load(folder / "first.npy", mmap_mode="r")), dtype=bool)
    gone[np.load(folder / "gone.npy")] = True
    found |= {"planted": len(pairs), "recall": round(float((gone[pairs[:, 0]] | gone[pairs[:, 1]]).mean()), 5)}
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--of", type=int, default=1_000_000)
    options.add_argument("--threshold", type=float, default=0.95)
    chosen = options.parse_args()
    np.save(chosen.folder / "first.npy", np.load(chosen.folder / f"planted-{chosen.of}.npy", mmap_mode="r")[: chosen.rows])
    pairs = np.load(chosen.folder / f"planted-{chosen.of}.pairs.npy")
    pairs = pairs[pairs.max(axis=1) < chosen.rows]
    ways = {"munjang": (sys.executable, "from munjang import dedupe_output", MUNJANG)}
    if peer := os.environ.get("MUNJANG_SEMHASH"):
        ways["semhash"] = (peer, "from semhash import SemHash", SEMHASH)
    for name, way in ways.items():
        print(json.dumps({"way": name, "rows": chosen.rows, **measure(*way, chosen.folder, chosen.threshold, pairs)}), flush=True)


if __name__ == "__main__":
    main()
