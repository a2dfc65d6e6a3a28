"""The table of a Korean-English model: STS in both languages and across them, translation retrieval, passage retrieval.

    python recipes/ko-en-small/scores.py ../shared/data runs/ko-en-small/data/tatoeba-held-out.tsv --part dev|test MODEL…

Spearman × 100 of the cosine; "across" pairs the English first sentence with the Korean second one of the same row. Tatoeba is the share of
Korean sentences whose nearest English one is their translation; KorQuAD the share of questions whose paragraph is among the first ten.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from munjang import SentenceEncoder
from munjang.data import read_scored_pairs
from munjang.data.retrieval import read_squad
from munjang.evaluate.sts import score_sts
from munjang.text.readers import read_rows
from munjang.vectors.topk import top_k


def main() -> None:
    """Print one row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("tatoeba", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    chosen = parser.parse_args()
    print("| model | KorSTS | STSb | across | Tatoeba ko→en | KorQuAD recall@10 |\n|---|---|---|---|---|---|")
    for name in chosen.models:
        model = SentenceEncoder.load(name)
        found = [*sts_scores(model, chosen.data, chosen.part), translation(model, chosen.tatoeba), passages(model, chosen.data)]
        print(f"| {name} | " + " | ".join(f"{100 * value:.2f}" for value in found) + " |", flush=True)


def sts_scores(model: SentenceEncoder, data: Path, part: str) -> list[float]:
    """Return Spearman in Korean, in English, and across the two."""
    korean = read_scored_pairs(data / f"korsts/sts-{part}.tsv.gz").rows
    english = read_scored_pairs(data / f"stsb-en/stsb-en-{part}.csv.gz").rows
    labels = [row.score for row in korean]
    sides = {"ka": [r.a for r in korean], "kb": [r.b for r in korean], "ea": [r.a for r in english], "eb": [r.b for r in english]}
    vectors = {side: model.encode(texts) for side, texts in sides.items()}
    pairs = (("ka", "kb", labels), ("ea", "eb", [row.score for row in english]), ("ea", "kb", labels))
    return [score_sts(vectors[a], vectors[b], gold, resamples=0, worst=0).scores["spearman_cosine"] for a, b, gold in pairs]


def translation(model: SentenceEncoder, path: Path) -> float:
    """Return how many Korean sentences find their English one."""
    rows = [row.values for row in read_rows(path)]
    english, korean = model.encode([str(row["en"]) for row in rows]), model.encode([str(row["ko"]) for row in rows])
    return float((top_k(korean, english, k=1)[1][:, 0] == np.arange(len(rows))).mean())


def passages(model: SentenceEncoder, data: Path) -> float:
    """Return how many questions find their paragraph among ten; the model's own prompts are used."""
    task = read_squad(data / "korquad1-dev/KorQuAD_v1.0_dev.json.gz")
    documents, queries = list(task.corpus), list(task.judgements)
    has = {name: name if name in model.prompts else None for name in ("query", "passage")}
    corpus = model.encode([task.corpus[key] for key in documents], prompt_name=has["passage"])
    asked = model.encode([task.queries[key] for key in queries], prompt_name=has["query"])
    found = top_k(asked, corpus, k=10)[1]
    wanted = [documents.index(next(iter(task.judgements[key]))) for key in queries]
    return float(np.mean([want in row for want, row in zip(wanted, found.tolist(), strict=True)]))


if __name__ == "__main__":
    main()
