"""Topics of 7,000 Korean bills, beside BERTopic with the same vectors, each in a process of its own, one after the other in one run.

    python benchmarks/topics.py [--data FILE] [--vectors FILE.npy] [--model NAME] [--json FILE] [--only munjang,…]

Peers run under the Python that MUNJANG_TOPIC_PEERS names, else under .venv-peers (bertopic, umap-learn, hdbscan, kiwipiepy); without them
Munjang is measured alone. Vectors are made once with --model and kept in --vectors. Munjang runs twice, to show that two processes agree.

Printed for each: topics, outliers, agreement with the 14 committees (NMI, ARI, outliers as one group), NPMI over the documents' words as
each way splits them, diversity, particles and endings among the words (as Kiwi tags the word alone), wall and processor seconds, peak
memory. On a machine that others use too, trust processor seconds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from machine import describe_machine
from munjang.analyze.topics.topic_words import Bag, bag_words, compute_diversity, compute_npmi, make_bag
from munjang.text.tagging import choose_tagger

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared/data/korean-assembly-bills/bills_14x500.tsv.gz"
WAYS = ("munjang", "bertopic", "bertopic-kiwi", "munjang again")
GRAMMAR = ("J", "E", "XSV", "XSA", "VX", "VCP", "VCN")
COLUMNS = ("topics", "outliers", "nmi", "ari", "npmi", "diversity", "grammar_words", "wall_s", "cpu_s", "peak_mb")


def bills(path: Path) -> tuple[list[str], list[str]]:
    """Return texts and committees."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["text"] for row in rows], [row["committee"] for row in rows]


def vectors_of(texts: Sequence[str], path: Path, model: str | None) -> None:
    """Encode the texts once, at most 128 tokens of each."""
    if path.is_file():
        return
    from munjang import SentenceEncoder

    encoder = SentenceEncoder.load(model, compute="int8", max_length=128)
    np.save(path, encoder.encode(texts, progress=True))


def measured(way: str, texts_file: Path, vectors_file: Path) -> dict[str, Any] | None:
    """Run one way in a process; None where its peers are not installed."""
    python = Path(sys.executable)
    if way.startswith("bertopic"):
        python = Path(os.environ.get("MUNJANG_TOPIC_PEERS", ROOT / ".venv-peers/bin/python"))
        if subprocess.run([python, "-c", "import bertopic"], capture_output=True, check=False).returncode:
            return None
    worker = Path(__file__).with_name("topics_worker.py")
    done = subprocess.run([python, worker, way.split()[0], texts_file, vectors_file], stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def grammar_words(topics: Sequence[Sequence[str]]) -> int:
    """Return how many topic words Kiwi, given the word alone, ends in a particle, an ending or an auxiliary."""
    words = sorted({word for topic in topics for word in topic if re.search("[가-힣]", word)})
    return sum(any(m.tag.startswith(GRAMMAR) for m in found) for found in choose_tagger("kiwi").tag(words))


def scores(found: dict[str, Any], committees: Sequence[str], bag: Bag) -> dict[str, float]:
    """Return the figures of one way."""
    labels, words = found["labels"], found["words"]
    return {
        "topics": len(words),
        "outliers": round(labels.count(-1) / len(labels), 4),
        "nmi": round(float(normalized_mutual_info_score(committees, labels)), 4),
        "ari": round(float(adjusted_rand_score(committees, labels)), 4),
        "npmi": round(float(np.mean(compute_npmi(words, bag))), 4),
        "diversity": round(compute_diversity(words), 4),
        "grammar_words": grammar_words(words),
        **{name: round(found[name], 1) for name in ("wall_s", "cpu_s", "peak_mb")},
    }


def plain_words(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split as BERTopic's default vectorizer does."""
    return (re.findall(r"\b\w\w+\b", text.lower()) for text in texts)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--vectors", type=Path)
    options.add_argument("--model")
    options.add_argument("--only", default=",".join(WAYS))
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    texts, committees = bills(chosen.data)
    results: dict[str, Any] = {"machine": describe_machine(), "ways": {}}
    with tempfile.TemporaryDirectory() as folder:
        vectors_file, texts_file = chosen.vectors or Path(folder, "vectors.npy"), Path(folder, "texts.json")
        vectors_of(texts, vectors_file, chosen.model)
        texts_file.write_text(json.dumps(texts), encoding="utf-8")
        answers = {way: measured(way, texts_file, vectors_file) for way in WAYS if way in chosen.only.split(",")}
    nouns, words = bag_words(texts, choose_tagger("kiwi")), make_bag(plain_words(texts))
    print(f"{'':16}" + "".join(f"{name:>14}" for name in COLUMNS))
    for way, found in answers.items():
        if found is None:
            print(f"{way:16} not installed")
            continue
        row = results["ways"][way] = scores(found, committees, words if way == "bertopic" else nouns)
        print(f"{way:16}" + "".join(f"{row[name]:14}" for name in COLUMNS), flush=True)
    first, again = answers.get("munjang"), answers.get("munjang again")
    if first and again:
        results["two processes agree"] = first["labels"] == again["labels"] and first["words"] == again["words"]
        print(f"two processes agree: {results['two processes agree']}")
    peer = results["ways"].get("bertopic-kiwi")
    if first and peer:
        ours = results["ways"]["munjang"]
        results["ratios"] = {name: round(ours[name] / peer[name], 3) for name in ("wall_s", "cpu_s", "peak_mb")}
        print(f"munjang / bertopic-kiwi: {results['ratios']}")
    if chosen.json:
        chosen.json.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
