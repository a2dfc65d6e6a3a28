"""A multi-vector model trained from a small sentence encoder: what it finds before and after, on questions of other articles.

    python benchmarks/multi_vector.py [--model M] [--data KORQUAD.json.gz] [--rows 800] [--questions 300] [--max-length 160] [--json FILE]

KorQuAD 1.0 dev is split by articles: --rows questions with their paragraphs of the first two thirds to learn from, --questions of the
others to ask, over all their paragraphs. Printed are nDCG@10, MRR@10 and recall@10 by MaxSim of the model's own token vectors, untrained,
of a projection to --dimension before the first step, and of the trained model, with a paired bootstrap of nDCG@10 against the first.
All read at most --max-length tokens of a text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_texts import DATA
from munjang.evaluate.bootstrap import paired_bootstrap, resample_mean
from munjang.evaluate.retrieval import RetrievalResult, score_run
from munjang.models.registry import resolve
from munjang.train import train
from munjang.train.load_folder import EncoderOptions, load_encoder
from munjang.train.multi_vector import CUT, MultiVectorTask, SearchSet, encode_tokens, score_tokens
from munjang.train.recipe import make_recipe

Pair = tuple[str, str]


def read_articles(path: Path) -> list[list[Pair]]:
    """Return each article's questions with their paragraphs."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [[(asked["question"], part["context"]) for part in each["paragraphs"] for asked in part["qas"]] for each in articles]


def search(encoder: Any, task: SearchSet) -> RetrievalResult:
    """Return how high the answers stand."""
    score_QN = score_tokens(encode_tokens(encoder, task.questions), encode_tokens(encoder, task.texts))
    run = {
        question: {task.texts[column]: float(scores[column]) for column in (-scores).argsort(kind="stable")[:CUT]}
        for question, scores in zip(task.questions, score_QN, strict=True)
    }
    return score_run(run, task.judgements, documents=len(task.texts), cuts=(CUT,), resamples=0)


def make_search(pairs: Sequence[Pair], questions: int) -> SearchSet:
    chosen = random.Random(1).sample(pairs, min(questions, len(pairs)))
    return SearchSet(
        tuple(dict.fromkeys(asked for asked, _ in chosen)), tuple(dict.fromkeys(text for _, text in pairs)), {a: {b: 1} for a, b in chosen}
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model")
    options.add_argument("--data", type=Path, default=DATA / "korquad1-dev" / "KorQuAD_v1.0_dev.json.gz")
    options.add_argument("--rows", type=int, default=800)
    options.add_argument("--questions", type=int, default=300)
    options.add_argument("--max-length", type=int, default=160)
    options.add_argument("--dimension", type=int, default=128)
    options.add_argument("--epochs", type=int, default=1)
    options.add_argument("--learning-rate", type=float, default=5e-5)
    options.add_argument("--precision", choices=("float32", "bf16"), default="bf16")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    articles = read_articles(chosen.data)
    cut = 2 * len(articles) // 3
    learnt, asked = ([pair for article in part for pair in article] for part in (articles[:cut], articles[cut:]))
    task, base = make_search(asked, chosen.questions), resolve(chosen.model).path
    print(f"{cut} articles to learn from; {len(task.questions)} questions over {len(task.texts)} paragraphs of the others", flush=True)
    plain = load_encoder(base, EncoderOptions(max_length=chosen.max_length)).eval()
    with tempfile.TemporaryDirectory() as folder:
        rows = random.Random(0).sample(learnt, min(chosen.rows, len(learnt)))
        lines = ["\t".join(" ".join(text.split()) for text in pair) for pair in rows]
        (Path(folder) / "pairs.tsv").write_text("\n".join(["question\ttext", *lines]), encoding="utf-8")
        stage = {
            "data": {"path": "pairs.tsv", "kind": "parallel", "texts": ["question", "text"]},
            "epochs": chosen.epochs,
            "learning_rate": chosen.learning_rate,
        }
        model = {"base": str(base), "dense": chosen.dimension, "max_length": chosen.max_length}
        values = {"kind": "multi_vector", "output": "out", "seed": 1, "precision": chosen.precision, "model": model, "stage": [stage]}
        recipe = make_recipe(values, folder=Path(folder))
        found = {"untrained": search(plain, task)}
        print("untrained", found["untrained"].scores, flush=True)
        found["projection before"] = search(MultiVectorTask.build(recipe, keep=Path(folder)).model, task)
        print("projection before", found["projection before"].scores, flush=True)
        start = time.process_time()
        losses = [step.loss for step in train(recipe).log.steps]
        seconds = time.process_time() - start
        trained = MultiVectorTask.build(recipe, keep=Path(folder)).model
        load_trained(trained, Path(folder) / "out")
        found["trained"] = search(trained, task)
    metric = f"ndcg@{CUT}"
    compared = paired_bootstrap(found["trained"].per_query[metric], found["untrained"].per_query[metric], resample_mean)
    facts = {
        "scores": {name: {key: round(value, 4) for key, value in each.scores.items()} for name, each in found.items()},
        "trained − untrained": {"difference": round(compared.difference, 4), "ci95": compared.ci95.to_json(), "p": round(compared.p, 5)},
        "steps": len(losses),
        "loss": [round(losses[0], 3), round(losses[-1], 3)],
        "cpu_s": round(seconds, 1),
    }
    print(json.dumps(facts))
    if chosen.json:
        chosen.json.write_text(json.dumps(facts) + "\n", encoding="utf-8")


def load_trained(encoder: Any, folder: Path) -> None:
    """Put the weights of a trained folder into the encoder that its recipe starts from."""
    from safetensors.torch import load_file

    missing = encoder.base.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    assert not missing.unexpected_keys, missing
    encoder.tail[0].load_state_dict(load_file(folder / "1_Dense" / "model.safetensors"))


if __name__ == "__main__":
    main()
