"""Training speed beside sentence-transformers' own trainer: the same model, data, batches and optimiser, dropout on.

    python benchmarks/train.py [--rounds 3] [--steps 30] [--batch 16] [--bf16] [--cpu] [--json FILE]

Both compute in float32, with --bf16 in bfloat16 too. On a machine that does other work, --cpu with OMP_NUM_THREADS=1 counts CPU time.

First one step of both is compared with dropout off: loss and every gradient equal to 1e-5. Then both train in turns in one run, and each
once more in a process of its own for its peak memory. Data is STSb from ../shared/data where it is there, made-up sentences otherwise.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

OBJECTIVES = ("regression", "classification", "in_batch")
MODEL = "all-MiniLM-L6-v2"
COUNTS_CPU = "--cpu" in sys.argv
now = time.process_time if COUNTS_CPU else time.perf_counter
STSB = Path(__file__).resolve().parents[2] / "shared" / "data" / "stsb-en" / "stsb-en-train.csv.gz"


def rows(objective: str) -> list[tuple[str, str, float]]:
    if STSB.is_file():
        with gzip.open(STSB, "rt", encoding="utf-8") as stream:
            found = [(a, b, float(score) / 5) for a, b, score in csv.reader(stream)]
    else:
        chance = random.Random(0)
        words = [
            "the",
            "a",
            "small",
            "old",
            "river",
            "garden",
            "teacher",
            "walks",
            "sees",
            "slowly",
            "toward",
            "bright",
            "house",
            "and",
            "near",
            "under",
            "music",
            "window",
        ]
        made = [" ".join(chance.choices(words, k=chance.randint(5, 25))) for _ in range(4000)]
        found = [(a, b, chance.random()) for a, b in zip(made[::2], made[1::2], strict=True)]
    random.Random(1).shuffle(found)
    if objective == "in_batch":
        seen: set[str] = set()
        found = [row for row in found if not ({row[0], row[1]} & seen or seen.update(row[:2]))]
    return [(a, b, float(int(score * 2.999)) if objective == "classification" else score) for a, b, score in found]


def peer_loss(objective: str, model: Any) -> Any:
    from sentence_transformers import losses

    if objective == "regression":
        return losses.CosineSimilarityLoss(model)
    if objective == "classification":
        return losses.SoftmaxLoss(model, model.get_sentence_embedding_dimension(), 3)
    return losses.MultipleNegativesRankingLoss(model)


def peer_seconds(objective: str, data: list[tuple[str, str, float]], batch: int, steps: int, *, bf16: bool = False) -> float:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        started = ended = 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            if state.global_step == 2:
                Clock.started = now()
            Clock.ended = now()

    torch.manual_seed(0)
    model = SentenceTransformer(str(model_path()), device="cpu")
    columns: dict[str, list[Any]] = {"sentence1": [a for a, _, _ in data], "sentence2": [b for _, b, _ in data]}
    if objective != "in_batch":
        columns["label"] = [int(label) if objective == "classification" else label for _, _, label in data]
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=batch,
            max_steps=steps + 2,
            learning_rate=2e-5,
            warmup_steps=2,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=bf16,
        )
        trainer = SentenceTransformerTrainer(
            model, arguments, Dataset.from_dict(columns), loss=peer_loss(objective, model), callbacks=[Clock()]
        )
        trainer.train()
    return Clock.ended - Clock.started


def own_seconds(objective: str, data: list[tuple[str, str, float]], batch: int, steps: int, *, bf16: bool = False) -> float:
    from munjang.train.recipe import make_recipe
    from munjang.train.save_and_report import run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        # classes as words: 0 and 1 alone would be read as different and same
        label = (lambda value: f"class {int(value)}") if objective == "classification" else (lambda value: value)
        lines = [json.dumps({"a": a, "b": b} | ({} if objective == "in_batch" else {"label": label(value)})) for a, b, value in data]
        path.write_text("\n".join(lines), encoding="utf-8")
        source: dict[str, Any] = {"path": str(path), "texts": ["a", "b"]}
        if objective != "in_batch":
            source["label"] = "label"
        if objective == "regression":
            source["label_range"] = [0, 1]
        stage = {"objective": objective, "steps": steps + 2, "batch_size": batch, "data": [source]}
        clock = Clock()
        values = {"output": str(Path(folder) / "out"), "model": {"base": MODEL}, "stage": [stage], "checkpoint_every": 10**6}
        values["precision"] = "bf16" if bf16 else "float32"
        run(make_recipe(values, folder=Path(folder)), progress=clock)
        return clock.ended - clock.started


class Clock:
    """Takes the time of every step but the first two."""

    started = ended = 0.0

    def show_message(self, line: str) -> None:
        """Drop a remark."""

    def step(self, news: Any) -> None:
        """Take the time of a step."""
        if news.step == 2:
            self.started = now()
        self.ended = now()


def compare_step(objective: str, batch: int) -> dict[str, float]:
    """One batch through both, dropout off: the difference in loss, and the largest in any gradient."""
    import torch
    from sentence_transformers import SentenceTransformer

    from munjang.train.load_folder import EncoderOptions, load_encoder
    from munjang.train.objectives.registry import make_objective

    data = rows(objective)[:batch]
    labels = None if objective == "in_batch" else torch.tensor([label for _, _, label in data])
    labels = labels.long() if objective == "classification" else labels
    peer = SentenceTransformer(str(model_path()), device="cpu").eval()
    loss_module = peer_loss(objective, peer)
    own = load_encoder(model_path(), EncoderOptions(dropout=0.0)).train()
    head = make_objective(objective, {}, dimension=own.dimension, num_labels=3)
    if objective == "classification":
        head.load_state_dict({"head.weight": loss_module.classifier.weight, "head.bias": loss_module.classifier.bias})
    # the classifier's default in both: u, v, |u - v|
    features = [peer.preprocess([row[side] for row in data]) for side in (0, 1)]
    theirs = loss_module(features, labels)
    theirs.backward()
    ours = head(own.columns([own.tokens([row[side] for row in data]) for side in (0, 1)]), labels)
    ours.backward()
    gradients = {name: p.grad for name, p in peer[0].auto_model.named_parameters() if p.grad is not None}
    found = {name: p.grad for name, p in own.backbone.named_parameters() if p.grad is not None}
    assert gradients.keys() == found.keys(), gradients.keys() ^ found.keys()
    worst = max(float((gradients[name] - found[name]).abs().max()) for name in gradients)
    return {"loss_difference": abs(float(theirs.detach()) - float(ours.detach())), "gradient_difference": worst}


def model_path() -> Path:
    from munjang.models.registry import resolve

    return resolve(MODEL).path


def alone(who: str, objective: str, batch: int, steps: int) -> float:
    """Peak memory in MiB of one trainer in a process of its own."""
    command = [sys.executable, __file__, "--alone", who, "--objective", objective, "--batch", str(batch), "--steps", str(steps)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def peak_mib() -> float:
    # not getrusage: its peak counts the parent's memory at the fork
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--objective", action="append", choices=OBJECTIVES)
    parser.add_argument("--alone", choices=("peer", "own"))
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="both in bfloat16 too")
    parser.add_argument("--cpu", action="store_true", help="count CPU time instead of the clock's")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    objectives, batches = options.objective or OBJECTIVES, options.batch or [16, 32]
    if options.alone:
        run = {"peer": peer_seconds, "own": own_seconds}[options.alone]
        run(objectives[0], rows(objectives[0])[: batches[0] * (options.steps + 4)], batches[0], options.steps)
        print(peak_mib())
        return
    results = []
    for objective in objectives:
        for batch in batches:
            step = compare_step(objective, batch)
            assert step["loss_difference"] < 1e-5, step
            assert step["gradient_difference"] < 1e-5, step
            data = rows(objective)
            routes: dict[str, Callable[[], float]] = {
                f"{who}{' bf16' if bf16 else ''}": partial(run, objective, data, batch, options.steps, bf16=bf16)
                for bf16 in ((False, True) if options.bf16 else (False,))
                for who, run in (("peer", peer_seconds), ("own", own_seconds))
            }
            pace: dict[str, list[float]] = {who: [] for who in routes}
            for _ in range(options.rounds):
                for who, measure in routes.items():
                    pace[who].append(batch * options.steps / measure())
            median = {who: statistics.median(values) for who, values in pace.items()}
            for who in routes:
                print(f"  {who:10}{median[who]:7.1f} pairs/s  {median[who] / median['peer']:.2f} of peer", flush=True)
            entry: dict[str, Any] = {"objective": objective, "batch": batch, **step, "peer_pairs_per_second": pace["peer"]}
            entry |= {"own_pairs_per_second": pace["own"], "median": median, "ratio": median["own"] / median["peer"]}
            if not options.no_memory:
                entry |= {f"{who}_peak_mib": alone(who, objective, batch, 8) for who in ("peer", "own")}
            results.append(entry)
            memory = "" if options.no_memory else f"  peak MiB {entry['peer_peak_mib']:.0f} → {entry['own_peak_mib']:.0f}"
            print(
                f"{objective:15} batch {batch:3}  sentence-transformers {median['peer']:6.1f} pairs/s  munjang {median['own']:6.1f}"
                f"  ratio {entry['ratio']:.2f}{memory}  (loss ±{step['loss_difference']:.0e}, gradient ±{step['gradient_difference']:.0e})",
                flush=True,
            )
    print(json.dumps(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
