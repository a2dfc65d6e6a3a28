"""The table of a Korean-English model: STS in both languages and across them, translation retrieval, passage retrieval.

    python recipes/ko-en-small/scores.py ../shared/data runs/ko-en-small/data runs/ko-en-sections --part dev|test MODEL…

Spearman × 100 of the cosine; "across" pairs the English first sentence with the Korean second one of the same row. Tatoeba is the share of
Korean sentences whose nearest English one is their translation. KorQuAD: the share of questions whose paragraph is among the first ten, and
nDCG@10; TyDi QA dev: nDCG@10; headings of documentation that look for their section (see question_set.py): MRR@10. Weights are chosen on
dev: 1,000 questions of KorQuAD that benchmarks/retrieval.py does not report, all of TyDi QA's; test has all other questions of KorQuAD.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from munjang import SentenceEncoder
from munjang.data import read_scored_pairs
from munjang.data.retrieval import RetrievalTask, read_beir, read_squad
from munjang.evaluate.sts import score_sts
from munjang.text.readers import read_rows
from munjang.types import Compute
from munjang.vectors.topk import top_k

REPORTED, DRAWN = 1_000, 1_000
"""Questions of KorQuAD that benchmarks/retrieval.py reports, and of the others those that weights are chosen on."""

COLUMNS = ("KorSTS", "STSb", "across", "Tatoeba ko→en", "KorQuAD recall@10", "nDCG@10", "TyDi nDCG@10", "sections ko→en", "ko→ko", "en→en")


def main() -> None:
    """Print one row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("made", type=Path, help="the folder that prepare.py wrote")
    parser.add_argument("sections", type=Path, help="the folder that question_set.py wrote")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--compute", choices=get_args(Compute), default="float32")
    chosen = parser.parse_args()
    print(f"| model | {' | '.join(COLUMNS)} |\n|{'---|' * (1 + len(COLUMNS))}")
    korquad = read_squad(chosen.data / "korquad1-dev/KorQuAD_v1.0_dev.json.gz")
    tydi = read_squad(chosen.data / "tydiqa-ko/dev.json.gz")
    for name in chosen.models:
        model = SentenceEncoder.load(name, compute=chosen.compute)
        found = [*sts_scores(model, chosen.data, chosen.part), translation(model, chosen.made / f"tatoeba-{chosen.part}.tsv")]
        places = find_places(model, korquad, korquad_questions(korquad, chosen.part))
        found += [float((places < 10).mean()), ndcg(places), ndcg(find_places(model, tydi, list(tydi.judgements)))]
        for side in ("ko-en", "ko-ko", "en-en"):
            task = read_beir(chosen.sections / chosen.part / side)
            places = find_places(model, task, list(task.judgements))
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


def korquad_questions(task: RetrievalTask, part: str) -> list[str]:
    """Return the questions that weights are chosen on, none of which benchmarks/retrieval.py reports, or all others."""
    asked = sorted(task.judgements)
    others = sorted(set(asked) - set(random.Random(0).sample(asked, REPORTED)))
    chosen_on = set(random.Random(1).sample(others, DRAWN))
    return [query for query in asked if (query in chosen_on) == (part == "dev")]


def find_places(model: SentenceEncoder, task: RetrievalTask, queries: Sequence[str]) -> NDArray[np.int64]:
    """Return for each question the place of its passage, from 0; 10 beyond. Prompts are the model's own."""
    documents = list(task.corpus)
    has = {name: name if name in model.prompts else None for name in ("query", "passage")}
    corpus = model.encode([task.corpus[key] for key in documents], prompt_name=has["passage"])
    asked = model.encode([task.queries[key] for key in queries], prompt_name=has["query"])
    hits = top_k(asked, corpus, k=10)[1]
    wanted = [documents.index(next(iter(task.judgements[key]))) for key in queries]
    return np.array([row.index(want) if want in row else 10 for want, row in zip(wanted, hits.tolist(), strict=True)])


def ndcg(places: NDArray[np.int64]) -> float:
    """Return the mean nDCG@10 of questions with one right passage."""
    return float(np.where(places < 10, 1 / np.log2(places + 2.0), 0).mean())


if __name__ == "__main__":
    main()
