"""A searchable collection, beside txtai: same model folder, same texts, same questions, hybrid search, each in a process of its own.

    ./run bench beside_txtai [--model FOLDER] [--sentences 10000] [--questions 1000] [--rounds 3]
        [--only munjang,munjang int8,txtai] [--json FILE]

Two collections: sentences of the STS benchmark, each tenth of which is asked for again, and the paragraphs of KorQuAD 1.0 dev with real
Korean questions. txtai runs with its own defaults, hybrid and content switched on; Munjang with its default search and its Korean analyser.
Measured: seconds to put the texts in (the model already loaded), milliseconds a question one by one (median), peak memory of the process,
bytes on disk, and on KorQuAD nDCG@10 and recall@10 with a paired bootstrap. Ways take turns within a round; the median of rounds counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_texts import short_sentences
from munjang.data.retrieval import read_retrieval
from munjang.evaluate.bootstrap import paired_bootstrap, resample_mean
from munjang.evaluate.retrieval import score_run
from munjang.models.registry import resolve
from retrieval import CUT, DEFAULT_DATA, sampled

WAYS = ("munjang", "munjang int8", "txtai")
KORQUAD = DEFAULT_DATA[0]
FIGURES = ("add_s", "question_ms", "peak_mb", "disk_mb")

Task = dict[str, Any]
"""Texts and questions by id; judgements where there are any."""


def sentences(count: int) -> Task:
    """Return short sentences, and each tenth as a question."""
    texts = {str(number): text for number, text in enumerate(short_sentences(count))}
    return {"texts": texts, "questions": {id: text for id, text in texts.items() if int(id) % 10 == 0}}


def korquad(count: int) -> Task:
    """Return KorQuAD's paragraphs with a seeded sample of its questions."""
    task = read_retrieval(KORQUAD)
    asked = sampled(task, count)
    return {
        "texts": {id: text for id, text in task.corpus.items() if text.strip()},
        "questions": {id: task.queries[id] for id in asked},
        "judged": {id: task.judgements[id] for id in asked},
    }


def measured(way: str, model: Path, task: Task) -> dict[str, Any]:
    """Run one way in a process of its own and return its figures and answers."""
    worker = Path(__file__).with_name("beside_txtai_worker.py")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "task.json")
        file.write_text(json.dumps({"texts": task["texts"], "questions": task["questions"]}), encoding="utf-8")
        done = subprocess.run([sys.executable, worker, way, model, file, folder], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def quality(task: Task, answers: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """Return how good each way's answers are, and how far txtai's lie from ours."""
    scored = {
        way: score_run(
            {id: {hit: float(CUT - place) for place, hit in enumerate(hits)} for id, hits in found.items()},
            task["judged"],
            documents=len(task["texts"]),
            cuts=(CUT,),
        )
        for way, found in answers.items()
    }
    facts: dict[str, Any] = {way: {name: round(each.scores[name], 4) for name in ("ndcg@10", "recall@10")} for way, each in scored.items()}
    if {"munjang", "txtai"} <= scored.keys():
        gap = paired_bootstrap(scored["munjang"].per_query["ndcg@10"], scored["txtai"].per_query["ndcg@10"], resample_mean)
        facts["munjang − txtai"] = {"ndcg@10": round(gap.difference, 4), "p": round(gap.p, 5)}
    return facts


def main() -> None:
    """Measure, print, and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", help="a model's name or folder; without it the default one")
    options.add_argument("--sentences", type=int, default=10_000)
    options.add_argument("--questions", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default=",".join(WAYS))
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    ways = [way for way in WAYS if way in chosen.only.split(",")]
    model = resolve(chosen.model).path
    tasks = {"sentences": sentences(chosen.sentences)} | ({"korquad": korquad(chosen.questions)} if KORQUAD.exists() else {})
    results: dict[str, Any] = {"model": model.name}
    for name, task in tasks.items():
        rounds = [{way: measured(way, model, task) for way in ways} for _ in range(chosen.rounds)]
        print(f"\n{name}: {len(task['texts']):,} texts, {len(task['questions']):,} questions, {model.name}")
        print(f"{'':16}" + "".join(f"{figure:>14}" for figure in FIGURES))
        results[name] = {}
        for way in ways:
            figures = {figure: round(statistics.median(each[way][figure] for each in rounds), 2) for figure in FIGURES}
            results[name][way] = figures
            print(f"{way:16}" + "".join(f"{figures[figure]:14,.2f}" for figure in FIGURES), flush=True)
        if "judged" in task:
            results[name]["quality"] = quality(task, {way: rounds[0][way]["answers"] for way in ways})
            print(json.dumps(results[name]["quality"], ensure_ascii=False))
    line = json.dumps(results, ensure_ascii=False)
    if chosen.json:
        chosen.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
