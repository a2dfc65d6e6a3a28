"""A finished model folder → the package: float16 weights, no training leftovers, our own card, and the SHA-256 of every file.

python recipes/bundle.py runs/ko-en-small/student ko-en-small
python recipes/bundle.py --hashes                                   only the hashes, after a file of a bundled model has changed
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from munjang.models.registry import BUNDLED

HERE = Path(__file__).parent
LEFT_OUT = ("training", "report.html", "manifest.json", "distillation.json", "adaptation.json", "README.md")
LARGEST = 60_000_000


def main() -> None:
    """Copy, halve, hash."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("name", nargs="?")
    parser.add_argument("--hashes", action="store_true", help="write the hashes of the bundled models again, and nothing else")
    chosen = parser.parse_args()
    if chosen.hashes:
        write_hashes()
        return
    if chosen.name is None:
        parser.error("expected a model's folder and the name it gets in the package")
    target = BUNDLED / chosen.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(chosen.folder, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for weights in target.rglob("*.safetensors"):
        save_file({name: halved(array) for name, array in load_file(weights).items()}, weights, metadata={"format": "pt"})
        weights.chmod(0o644)  # safetensors writes for its owner alone
    shutil.copy(HERE / chosen.name / "CARD.md", target / "README.md")
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{chosen.name}: {size / 1e6:.1f} MB")
    if size > LARGEST:
        raise SystemExit(f"{chosen.name} has {size / 1e6:.1f} MB, expected {LARGEST / 1e6:.0f} or less")
    write_hashes()


def halved(array: np.ndarray) -> np.ndarray:
    """Return float32 as float16, anything else as it is."""
    return array.astype(np.float16) if array.dtype == np.float32 else array


def write_hashes() -> None:
    """Write the SHA-256 of every file of every bundled model."""
    found = {model.parent.name: hashes_of(model.parent) for model in sorted(BUNDLED.glob("*/config.json"))}
    (BUNDLED / "hashes.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def hashes_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its place in the folder."""
    return {str(file.relative_to(folder)): digest(file) for file in sorted(folder.rglob("*")) if file.is_file()}


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
