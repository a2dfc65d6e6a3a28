"""Two trained folders of one shape → the folder whose weights are their mean: it keeps some of what each is good at.

    python recipes/ko-en-small/average.py runs/ko-en-small/distilled runs/ko-en-small/student -o runs/ko-en-small/averaged

Works where one model was trained from the other. Settings and tokenizer are those of the second.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from safetensors.numpy import load_file, save_file

LEFT_OUT = ("training", "report.html", "manifest.json", "distillation.json")
WEIGHTS = "model.safetensors"


def main() -> None:
    """Average and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.5, help="the second folder's share")
    chosen = parser.parse_args()
    first, second = load_file(chosen.first / WEIGHTS), load_file(chosen.second / WEIGHTS)
    if {name: array.shape for name, array in first.items()} != {name: array.shape for name, array in second.items()}:
        raise SystemExit(f"{chosen.first} and {chosen.second} have other tensors")
    shutil.copytree(chosen.second, chosen.output, ignore=shutil.ignore_patterns(*LEFT_OUT))
    mean = {name: ((1 - chosen.share) * first[name] + chosen.share * second[name]).astype(second[name].dtype) for name in first}
    save_file(mean, chosen.output / WEIGHTS, metadata={"format": "pt"})


if __name__ == "__main__":
    main()
