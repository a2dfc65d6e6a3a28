"""Labels of Korean texts: Munjang's classifiers beside scikit-learn's on the same vectors, and beside words alone.

    python benchmarks/classify.py [--data FOLDER] [--cache FOLDER] [--rows 5000] [--seeds 10] [--sets …] [--only fewshot,…] [--json FILE]
    SETFIT/bin/python benchmarks/classify_setfit_worker.py ynat 0,1,2 --cache FOLDER

Three sets: ynat (headlines, 7 topics), 3i4k (utterances, 7 intentions), bills (14 committees). Of each, --rows rows are drawn with a fixed
seed, encoded once (at most 128 tokens, int8) and kept in --cache. SetFit runs from an environment of its own, on the rows that --cache
keeps (one file a set, written with `--only export`). Printed:

    fewshot    macro-F1 with 1 … 64 examples a label, beside LogisticRegressionCV on the same vectors and examples, paired over seeds
    all        80 % of the rows to learn from, 20 % to measure on, beside LogisticRegressionCV and a linear SVM on TF-IDF of morphemes
    tune       8 examples a label: what `classify fit --tune` gives (frozen or tuned, as held-out examples say), the tuned body, CPU seconds
    zero       no example: plain cosine to the label's name, and Munjang
    entail     no example: the cross-encoder --scorer, on --scored rows
    abstain    asked for 95 %: the precision on unseen rows with its bootstrap interval, and the share that is answered; calibration error,
               beside the error that exact probabilities would show on as many rows
    doubtful   5 % of the labels changed at random: how many of them stand in the first 5 % of the list
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import f1_score

from munjang import CrossEncoder, SentenceEncoder, apply_classifier, classify_by_entailment, classify_texts, find_doubtful, fit_classifier
from munjang.evaluate.bootstrap import bootstrap_means
from munjang.evaluate.text_labels import evaluate_labels, make_calibration_bins

ROOT = Path(__file__).parents[1]
SETS = ("ynat", "3i4k", "bills")
SIZES = (1, 2, 4, 8, 16, 32, 64)
YNAT = ("IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치")


@dataclass(frozen=True)
class Labelled:
    """Texts with labels and vectors."""

    name: str
    texts: list[str]
    labels: np.ndarray
    vectors: np.ndarray

    def split(self, seed: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
        """Return rows to learn from and rows to measure on."""
        order = np.random.default_rng(seed).permutation(len(self.texts))
        cut = int(share * len(order))
        return order[cut:], order[:cut]


def read_set(name: str, data: Path) -> tuple[list[str], list[str]]:
    path = {"ynat": "klue-ynat-headlines/train", "3i4k": "3i4k/utterances", "bills": "korean-assembly-bills/bills_14x500"}[name]
    with gzip.open(data / f"{path}.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    if name == "ynat":
        return [row["title"] for row in rows], [YNAT[int(row["topic"])] for row in rows]
    if name == "3i4k":
        return [row["utterance"] for row in rows], [row["type"] for row in rows]
    return [f"{row['title']} {row['text']}" for row in rows], [row["committee"] for row in rows]


def load_set(name: str, data: Path, cache: Path, rows: int) -> Labelled:
    texts, labels = read_set(name, data)
    chosen = np.sort(np.random.default_rng(0).permutation(len(texts))[:rows])
    texts, labels = [texts[row] for row in chosen], [labels[row] for row in chosen]
    file = cache / f"{name}-{len(texts)}.npy"
    if not file.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(file, SentenceEncoder.load(None, compute="int8", max_length=128).encode_with_report(texts).vectors)
    return Labelled(name, texts, np.array(labels), np.load(file))


def macro(gold: Any, best: Any) -> float:
    return 100 * float(f1_score(gold, best, average="macro", zero_division=0))


def regression(folds: int) -> LogisticRegressionCV:
    return LogisticRegressionCV(Cs=10, cv=folds, max_iter=1000)


def draw_examples(data: Labelled, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return so many rows of each label, and the rows to measure on."""
    pool, test = data.split(seed)
    return np.concatenate([pool[data.labels[pool] == name][:size] for name in np.unique(data.labels)]), test


def fewshot(data: Labelled, seeds: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    found = []
    for size in sizes:
        mine, theirs, seconds = [], [], [0.0, 0.0]
        for seed in range(seeds):
            drawn, test = draw_examples(data, size, seed)
            x, y = data.vectors[drawn], data.labels[drawn]
            start = time.process_time()
            made = fit_classifier([data.texts[row] for row in drawn], y, vectors=x, seed=seed)
            seconds[0] += time.process_time() - start
            answers = apply_classifier(made, [""] * len(test), vectors=data.vectors[test])
            mine.append(macro(data.labels[test], np.array(made.labels)[answers.best_N]))
            if size == 1:  # nothing to cross-validate with
                continue
            start = time.process_time()
            other = regression(min(5, size)).fit(x, y)
            seconds[1] += time.process_time() - start
            theirs.append(macro(data.labels[test], other.predict(data.vectors[test])))
        gap = np.array(mine) - np.array(theirs) if theirs else np.zeros(0)
        found.append(
            {
                "set": data.name,
                "examples": size,
                "munjang": round(float(np.mean(mine)), 2),
                "sd": round(float(np.std(mine)), 2),
                "LogisticRegressionCV": round(float(np.mean(theirs)), 2) if theirs else None,
                "difference": round(float(gap.mean()), 2) if len(gap) else None,
                "p": sign_flip(gap) if len(gap) else None,
                "cpu_s": [round(each / seeds, 3) for each in seconds],
            }
        )
        print(json.dumps(found[-1], ensure_ascii=False), flush=True)
    return found


def sign_flip(gap: np.ndarray) -> float:
    """Return the two-sided p of a paired randomisation test over all signs, at most 2^16 of them drawn."""
    signs = np.random.default_rng(0).choice([-1, 1], size=(2**14, len(gap)))
    return round(float((np.abs((signs * gap).mean(axis=1)) >= abs(gap.mean()) - 1e-12).mean()), 4)


def tune(data: Labelled, seed: int, *, size: int = 8, tested: int = 1_000) -> dict[str, Any]:
    from munjang.analyze.classify.tuning import compare_tuned
    from munjang.models.registry import resolve
    from munjang.train.tune_labels import BodyTuner

    drawn, test = draw_examples(data, size, seed)
    test = test[:tested]
    texts, labels, tuner = [data.texts[row] for row in drawn], data.labels[drawn].tolist(), BodyTuner(resolve(None).path)
    target_NC = data.labels[drawn][:, None] == np.unique(data.labels[drawn])

    def measure(train_ND: np.ndarray, test_ND: np.ndarray) -> tuple[float, float]:
        start = time.process_time()
        made = fit_classifier(texts, labels, vectors=train_ND, seed=seed)
        cpu = time.process_time() - start
        answers = apply_classifier(made, [""] * len(test), vectors=test_ND)
        return macro(data.labels[test], np.array(made.labels)[answers.best_N]), cpu

    frozen, frozen_cpu = measure(data.vectors[drawn], data.vectors[test])
    start = time.process_time()
    body = tuner.tune(texts, target_NC, seed=seed)
    train_ND = body.encode(texts)
    tune_cpu = time.process_time() - start
    body.text = replace(body.text, max_length=128)
    tuned, _ = measure(train_ND, body.encode([data.texts[row] for row in test]))
    print(f"{data.name} {seed}: frozen {frozen:.2f}, tuned {tuned:.2f}, {tune_cpu:.1f} s", file=sys.stderr, flush=True)
    start = time.process_time()
    outcome = compare_tuned(texts, target_NC, tuner, data.vectors[drawn], multi=False, seed=seed)
    compare_cpu = time.process_time() - start
    return {
        "set": data.name,
        "seed": seed,
        "test": len(test),
        "frozen": round(frozen, 2),
        "body tuned": round(tuned, 2),
        "kept": outcome.kept,
        "--tune": round(tuned if outcome.kept else frozen, 2),
        "held_out": [round(outcome.frozen_accuracy, 3), round(outcome.tuned_accuracy, 3)],
        "cpu_s": {"frozen": round(frozen_cpu, 3), "compare": round(compare_cpu, 1), "tune": round(tune_cpu, 1)},
    }


def all_rows(data: Labelled) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    from munjang.text.tagging import choose_tagger

    train, test = data.split(0)
    gold = data.labels[test]
    start = time.process_time()
    made = fit_classifier([data.texts[row] for row in train], data.labels[train], vectors=data.vectors[train])
    cpu = time.process_time() - start
    answers = apply_classifier(made, [""] * len(test), vectors=data.vectors[test])
    start = time.process_time()
    other = regression(5).fit(data.vectors[train], data.labels[train])
    other_cpu = time.process_time() - start
    spoken = [[morpheme.form for morpheme in each] for each in choose_tagger(None).tag(data.texts)]
    words = TfidfVectorizer(analyzer=lambda row: spoken[row])
    table = words.fit_transform(train)
    machine = LinearSVC().fit(table, data.labels[train])
    return {
        "set": data.name,
        "train": len(train),
        "test": len(test),
        "munjang": round(macro(gold, np.array(made.labels)[answers.best_N]), 2),
        "LogisticRegressionCV": round(macro(gold, other.predict(data.vectors[test])), 2),
        "TF-IDF SVM": round(macro(gold, machine.predict(words.transform(test))), 2),
        "cpu_s": [round(cpu, 1), round(other_cpu, 1)],
    }


def zero(data: Labelled, model: SentenceEncoder) -> dict[str, Any]:
    names = sorted(set(data.labels.tolist()))
    label_CD = model.encode(names)
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (data.vectors, label_CD)]
    plain = np.array(names)[(unit[0] @ unit[1].T).argmax(axis=1)]
    found = classify_texts(data.texts, names, model, vectors=data.vectors)
    chances = evaluate_labels(found.probability_NC, found.names, data.labels.tolist(), resamples=200)
    return {
        "set": data.name,
        "cosine": round(macro(data.labels, plain), 2),
        "munjang": round(macro(data.labels, np.array(found.names)[found.best_N]), 2),
        "munjang_ci95": [round(100 * each, 2) for each in (chances.macro_f1_ci95.low, chances.macro_f1_ci95.high)],
        "ece": round(chances.ece, 4),
    }


def entail(data: Labelled, scorer: Path, rows: int) -> dict[str, Any]:
    names = sorted(set(data.labels.tolist()))
    chosen = np.random.default_rng(2).permutation(len(data.texts))[:rows]
    judge = CrossEncoder.load(scorer, compute="int8")
    start = time.process_time()
    answers = classify_by_entailment([data.texts[row] for row in chosen], names, judge)
    return {
        "set": data.name,
        "rows": rows,
        "scorer": round(macro(data.labels[chosen], np.array(answers.names)[answers.best_N]), 2),
        "cpu_s": round(time.process_time() - start, 1),
    }


def abstain(data: Labelled, precision: float = 0.95) -> dict[str, Any]:
    train, test = data.split(1, share=0.4)
    made = fit_classifier([data.texts[row] for row in train], data.labels[train], vectors=data.vectors[train])
    plain = apply_classifier(made, [""] * len(test), vectors=data.vectors[test])
    report = evaluate_labels(plain.probability_NC, plain.names, data.labels[test].tolist(), resamples=200)
    facts: dict[str, Any] = {
        "set": data.name,
        "train": len(train),
        "test": len(test),
        "accuracy": round(report.accuracy, 4),
        "ece": round(report.ece, 4),
        "ece_of_exact_probabilities": round(chance_error(plain.probability_NC.max(axis=1)), 4),
    }
    try:
        found = apply_classifier(made, [""] * len(test), vectors=data.vectors[test], precision=precision)
    except Exception as error:
        return facts | {"refused": str(error).splitlines()[0]}
    right = [float(each.label == gold) for each, gold in zip(found, data.labels[test], strict=True) if each.labels]
    interval = bootstrap_means({"p": right}, resamples=2_000)["p"]
    return facts | {
        "asked": precision,
        "precision": round(float(np.mean(right)), 4),
        "ci95": [round(interval.low, 4), round(interval.high, 4)],
        "share": round(len(right) / len(test), 4),
    }


def chance_error(confidence_N: np.ndarray, draws: int = 50) -> float:
    """Return the mean calibration error of answers that are right exactly as often as they say: what so few rows show by chance."""
    random = np.random.default_rng(0)
    errors = []
    for _ in range(draws):
        bins = make_calibration_bins(confidence_N, random.random(len(confidence_N)) < confidence_N)
        errors.append(sum(each.texts * abs(each.confidence - each.accuracy) for each in bins) / len(confidence_N))
    return float(np.mean(errors))


def doubtful(data: Labelled, share: float = 0.05) -> dict[str, Any]:
    random = np.random.default_rng(0)
    names = np.unique(data.labels)
    flipped = random.permutation(len(data.labels))[: int(share * len(data.labels))]
    noisy = data.labels.copy()
    for row in flipped:
        noisy[row] = random.choice(names[names != data.labels[row]])
    listed = find_doubtful(fit_classifier(data.texts, noisy, vectors=data.vectors), top=len(flipped))
    hits = len({each.row for each in listed} & set(flipped.tolist()))
    return {"set": data.name, "flipped": len(flipped), "found_in_first": hits, "share": round(hits / len(flipped), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/munjang-classify"))
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--scorer", type=Path, help="A cross-encoder trained on inference, for the part entail.")
    parser.add_argument("--scored", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="fewshot,all,zero,abstain,doubtful")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's notes on convergence and rare labels
    model = SentenceEncoder.load(None, compute="int8", max_length=128)
    parts = asked.only.split(",")
    results: dict[str, list[Any]] = {part: [] for part in parts}
    for name in asked.sets.split(","):
        data = load_set(name, asked.data, asked.cache, asked.rows)
        print(f"{name}: {len(data.texts):,} texts, {len(set(data.labels.tolist()))} labels", flush=True)
        for part in parts:
            if part in ("zero", "entail") and name == "3i4k":
                continue  # its labels have numbers, not names
            if part == "fewshot":
                results[part] += fewshot(data, asked.seeds, tuple(int(size) for size in asked.sizes.split(",")))
                continue
            if part == "export":
                np.savez(asked.cache / f"{name}.npz", texts=np.array(data.texts), labels=data.labels)
                continue
            if part == "tune":
                for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
                    results[part].append(tune(data, seed))
                    print(part, json.dumps(results[part][-1], ensure_ascii=False), flush=True)
                continue
            if part == "entail":
                results[part].append(entail(data, asked.scorer, asked.scored))
                print(part, json.dumps(results[part][-1], ensure_ascii=False), flush=True)
                continue
            work = {"all": all_rows, "abstain": abstain, "doubtful": doubtful}.get(part)
            results[part].append(zero(data, model) if work is None else work(data))
            print(part, json.dumps(results[part][-1], ensure_ascii=False), flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
