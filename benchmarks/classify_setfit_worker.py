"""SetFit on the examples of benchmarks/classify.py: macro-F1 and CPU seconds of a training with its default settings.

    SETFIT/bin/python benchmarks/classify_setfit_worker.py SET SEEDS [--cache FOLDER] [--model FOLDER] [--tested 1000] [--iterations N]

Runs in an environment of its own (torch, setfit). Reads the rows that `classify.py --only export` wrote; draws the same 8 examples a label
and the same test rows for each seed. One thread, at most 128 tokens a text. Prints one line of JSON a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import setfit
import torch
from datasets import Dataset
from sklearn.metrics import f1_score

BUNDLED = Path(__file__).parents[1] / "src/munjang/models/bundled/ko-en-small"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("seeds")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/munjang-classify"))
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--tested", type=int, default=1_000)
    parser.add_argument("--iterations", type=int)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = np.load(asked.cache / f"{asked.set}.npz", allow_pickle=False)
    texts, (names, label_N) = rows["texts"].tolist(), np.unique(rows["labels"], return_inverse=True)
    for seed in map(int, asked.seeds.split(",")):
        order = np.random.default_rng(seed).permutation(len(texts))
        cut = int(0.2 * len(order))
        pool, test = order[cut:], order[:cut][: asked.tested]
        drawn = np.concatenate([pool[label_N[pool] == label][:8] for label in range(len(names))])
        model = setfit.SetFitModel.from_pretrained(str(asked.model))
        model.model_body.max_seq_length = 128
        examples = Dataset.from_dict({"text": [texts[row] for row in drawn], "label": label_N[drawn].tolist()})
        settings = setfit.TrainingArguments(
            output_dir=str(asked.cache / "setfit"), seed=seed, report_to="none", save_strategy="no", num_iterations=asked.iterations
        )
        start = time.process_time()
        setfit.Trainer(model=model, args=settings, train_dataset=examples).train()
        cpu = time.process_time() - start
        best = np.array(model.predict([texts[row] for row in test]))
        f1 = 100 * f1_score(label_N[test], best, average="macro", zero_division=0)
        print(json.dumps({"set": asked.set, "seed": seed, "macro": round(f1, 2), "cpu_s": round(cpu, 1), "setfit": setfit.__version__}))


if __name__ == "__main__":
    main()
