"""The table of a Korean-English model: STS in both languages and across them, translation retrieval, passage retrieval.

    python recipes/ko-en-small/scores.py ../shared/data runs/ko-en-small/data/tatoeba-held-out.tsv --part dev|test MODEL…

Spearman × 100 of the cosine; "across" pairs the English first sentence with the Korean second one of the same row. Tatoeba is the share of
Korean sentences whose nearest English one is their translation; KorQuAD the share of questions whose paragraph is among the first ten, and
their nDCG@10. To choose on (dev), 1,000 of its questions are drawn; test has them all. With --sections (see question_set.py) MRR@10 of
Korean headings that look for their section in English and in Korean.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from munjang import SentenceEncoder
from munjang.data import read_scored_pairs
from munjang.data.retrieval import RetrievalTask, read_beir, read_squad
from munjang.evaluate.sts import score_sts
from munjang.text.readers import read_rows
from munjang.vectors.topk import top_k

SEED, DRAWN = 1, 1_000
"""The questions of KorQuAD that weights are chosen on."""


def main() -> None:
    """Print one row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("tatoeba", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--sections", type=Path, help="the folder that question_set.py wrote")
    chosen = parser.parse_args()
    columns = ["KorSTS", "STSb", "across", "Tatoeba ko→en", "KorQuAD recall@10", "nDCG@10"]
    columns += ["sections ko→en MRR@10", "ko→ko"] if chosen.sections else []
    print(f"| model | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}")
    korquad = read_squad(chosen.data / "korquad1-dev/KorQuAD_v1.0_dev.json.gz")
    for name in chosen.models:
        model = SentenceEncoder.load(name)
        found = [*sts_scores(model, chosen.data, chosen.part), translation(model, chosen.tatoeba)]
        places = find_places(model, korquad, count=DRAWN if chosen.part == "dev" else None)
        found += [float((places < 10).mean()), float(np.where(places < 10, 1 / np.log2(places + 2.0), 0).mean())]
        for side in ("ko-en", "ko-ko") if chosen.sections else ():
            places = find_places(model, read_beir(chosen.sections / side))
            found.append(float(np.where(places < 10, 1 / (places + 1.0), 0).mean()))
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


def find_places(model: SentenceEncoder, task: RetrievalTask, *, count: int | None = None) -> NDArray[np.int64]:
    """Return for each question (or for `count` drawn ones) the place of its passage, from 0; 10 beyond. Prompts are the model's own."""
    documents, queries = list(task.corpus), list(task.judgements)
    if count is not None:
        queries = random.Random(SEED).sample(queries, count)
    has = {name: name if name in model.prompts else None for name in ("query", "passage")}
    corpus = model.encode([task.corpus[key] for key in documents], prompt_name=has["passage"])
    asked = model.encode([task.queries[key] for key in queries], prompt_name=has["query"])
    hits = top_k(asked, corpus, k=10)[1]
    wanted = [documents.index(next(iter(task.judgements[key]))) for key in queries]
    return np.array([row.index(want) if want in row else 10 for want, row in zip(wanted, hits.tolist(), strict=True)])


if __name__ == "__main__":
    main()
