"""Re-ranking speed: 100 candidates per query, against sentence-transformers' CrossEncoder, interleaved in one run.

    ./run bench rerank [--model FOLDER] [--rounds 5] [--queries 3] [--real] [--cpu] [--order] [--json FILE]

Without --model, a cross-encoder of MiniLM-L6 shape with all-MiniLM-L6-v2's encoder and a random head is measured: speed does not depend on
what the head knows; int8's order agreement does, so give a trained model for that. Reported: the median over rounds of their time / our
time, for short pairs and for query-passage pairs, the largest score difference, and how far int8 keeps the order (Kendall's tau).

--order measures no time: on real lists (questions of KorQuAD and of Cranfield, 100 candidates each) it compares the order of every other
arithmetic with that of float32, over all pairs of candidates and over those whose float32 scores differ by more than a bound. It needs a
trained --model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bench_texts import DATA, passages, short_sentences

CANDIDATES = 100
Score = Callable[[list[tuple[str, str]]], np.ndarray]


def random_head_folder() -> str:
    """Return a folder with all-MiniLM-L6-v2's encoder and a seeded random head."""
    import torch
    import transformers

    from munjang.models.registry import resolve

    torch.manual_seed(0)
    source = str(resolve("all-MiniLM-L6-v2").path)
    folder = tempfile.mkdtemp()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
    torch.nn.init.normal_(model.classifier.weight, std=0.3)
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(source, model_max_length=512).save_pretrained(folder)
    return folder


def routes(folder: str) -> dict[str, Score]:
    from sentence_transformers import CrossEncoder as Theirs

    from munjang import CrossEncoder
    from munjang.engine.devices import multiplies_bfloat16
    from munjang.types import Compute

    theirs = Theirs(folder, device="cpu")
    names: list[Compute] = ["float32", *(["bfloat16"] if find_spec("openvino") and multiplies_bfloat16() else []), "int8"]
    found: dict[str, Score] = {"sentence-transformers": lambda pairs: theirs.predict(pairs, batch_size=32)}
    for compute in names:
        ours = CrossEncoder.load(folder, compute=compute)
        found[f"munjang {compute}"] = lambda pairs, ours=ours: ours.predict_with_report(pairs).scores
    return found


def pair_sets(queries: int) -> dict[str, list[list[tuple[str, str]]]]:
    short, long = short_sentences(queries * (CANDIDATES + 1)), passages(CANDIDATES)
    return {
        "short": [[(short[q], short[queries + q * CANDIDATES + n]) for n in range(CANDIDATES)] for q in range(queries)],
        "passages": [[(short[q], text) for text in long] for q in range(queries)],
    }


def real_lists(queries: int, *, source: str = "korquad1-dev/KorQuAD_v1.0_dev.json.gz") -> dict[str, list[list[tuple[str, str]]]]:
    """Return questions of a collection, each with the passages that the bundled encoder finds for it."""
    from munjang import SentenceEncoder
    from munjang.data.retrieval import read_retrieval

    task = read_retrieval(DATA / source)
    asked = list(task.queries.values())[:: len(task.queries) // queries][:queries]
    texts = list(task.corpus.values())
    encoder = SentenceEncoder.load(compute="int8", max_length=128)
    scores = encoder.for_queries().encode(asked) @ encoder.for_documents().encode(texts).T
    return {"real": [[(question, texts[n]) for n in np.argsort(-row)[:CANDIDATES]] for question, row in zip(asked, scores, strict=True)]}


BOUNDS = (0.0, 0.001, 0.003, 0.01, 0.03)
"""Differences of float32 scores, above which pairs of candidates are counted."""


def compare_order(model: str | None, queries: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return how far each arithmetic keeps float32's order of real lists: mean and least tau, by bound, and what the ten best share."""
    from munjang import CrossEncoder
    from munjang.engine.devices import multiplies_bfloat16
    from munjang.types import Compute

    others: list[Compute] = [*(["bfloat16"] if find_spec("openvino") and multiplies_bfloat16() else []), "int8"]
    result: dict[str, dict[str, dict[str, float]]] = {}
    for name, source in (("KorQuAD", "korquad1-dev/KorQuAD_v1.0_dev.json.gz"), ("Cranfield", "cranfield")):
        lists = real_lists(queries, source=source)["real"]
        scores: dict[str, list[np.ndarray]] = {}
        computes: list[Compute] = ["float32", *others]
        for compute in computes:
            scorer = CrossEncoder.load(model, compute=compute)
            scores[compute] = [scorer.predict_with_report(pairs).scores for pairs in lists]
        result[name] = {}
        for compute in others:
            facts: dict[str, float] = {}
            for bound in BOUNDS:
                found = [keep_order(exact, other, bound) for exact, other in zip(scores["float32"], scores[compute], strict=True)]
                taus = [tau for tau, _ in found]
                facts |= {f"mean tau > {bound}": float(np.mean(taus)), f"least tau > {bound}": min(taus)}
                facts[f"pairs > {bound}"] = float(np.mean([share for _, share in found]))
            pairs = list(zip(scores["float32"], scores[compute], strict=True))
            facts["ten best shared"] = float(np.mean([len({*np.argsort(-a)[:10]} & {*np.argsort(-b)[:10]}) / 10 for a, b in pairs]))
            facts["max difference"] = float(max(np.abs(a - b).max() for a, b in pairs))
            facts["root mean square"] = float(np.sqrt(np.mean([np.mean((a - b) ** 2) for a, b in pairs])))
            facts["standard deviation"] = float(np.mean([np.std(a) for a, _ in pairs]))
            result[name][compute] = facts
            print(name, compute, {key: round(value, 4) for key, value in facts.items()}, flush=True)
    return result


def keep_order(exact: np.ndarray, other: np.ndarray, bound: float) -> tuple[float, float]:
    """Return Kendall's tau over the pairs whose exact scores differ by more than the bound, and their share of all pairs."""
    first, second = np.triu_indices(len(exact), k=1)
    differences = exact[first] - exact[second]
    counted = np.abs(differences) > bound
    agreed = np.sign(differences[counted]) * np.sign((other[first] - other[second])[counted])
    return float(agreed.mean()) if counted.any() else 1.0, float(counted.mean())


def main() -> None:
    from scipy.stats import kendalltau

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=3)
    parser.add_argument("--real", action="store_true", help="candidates that a search found: questions of KorQuAD and BM25's paragraphs")
    parser.add_argument("--cpu", action="store_true", help="count CPU time instead of the clock's; with OMP_NUM_THREADS=1")
    parser.add_argument("--order", action="store_true", help="how far int8 and bfloat16 keep float32's order of real lists")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.order:
        order = compare_order(options.model, options.queries)
        if options.json:
            options.json.write_text(json.dumps(order, indent=2) + "\n")
        return
    scorers = routes(options.model or random_head_folder())
    result: dict[str, dict[str, dict[str, float]]] = {}
    for name, queries in (real_lists if options.real else pair_sets)(options.queries).items():
        now = time.process_time if options.cpu else time.perf_counter
        times: dict[str, list[float]] = {route: [] for route in scorers}
        scores: dict[str, list[np.ndarray]] = {}
        for number in range(options.rounds + 1):  # the first round warms up
            for route, score in scorers.items():
                start = now()
                scores[route] = [score(pairs) for pairs in queries]
                if number:
                    times[route].append(now() - start)
        base, exact = times["sentence-transformers"], scores["sentence-transformers"]
        result[name] = {}
        for route in scorers:
            pairs = zip(exact, scores[route], strict=True)
            taus, differences = zip(*((kendalltau(a, b).statistic, np.abs(a - b).max()) for a, b in pairs), strict=True)
            result[name][route] = {
                "ratio": statistics.median(b / o for b, o in zip(base, times[route], strict=True)),
                "pairs_per_second": options.queries * CANDIDATES / statistics.median(times[route]),
                "max_difference": float(max(differences)),
                "kendall_tau": float(min(taus)),
            }
    for name, rows in result.items():
        for route, row in rows.items():
            facts = f"{row['ratio']:6.2f}×{row['pairs_per_second']:9.1f} pairs/s   max |Δ| {row['max_difference']:.1e}"
            print(f"{name:10}{route:24}{facts}   tau {row['kendall_tau']:.4f}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
