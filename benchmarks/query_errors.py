"""Questions with errors on KorQuAD: nDCG@10 as they were typed and as they are understood, paired over questions.

    python benchmarks/query_errors.py [--queries 1000] [--library FILE] [--by words] [--json FILE]

clean       as in the data set
no spaces   all spaces gone
slips       a tenth of the syllables has the letter of a neighbouring key in the place of one of its letters
letters     the same with any other letter, which the correction knows nothing of
hanja       a noun as its Hanja, where an article writes it so behind the noun; articles without that Hanja
initials    a name of the question (three syllables or more, in few paragraphs) as its 초성 alone

Draws are seeded. "typed" is the search with `as_typed`, "meant" without; the first of "clean" is what errors are compared with.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench_texts import DATA
from munjang.cli.load_model import load_for_search
from munjang.data.retrieval import read_retrieval
from munjang.evaluate.bootstrap import paired_bootstrap, resample_mean
from munjang.library.library import Library
from munjang.text.hangul import FINALS, INITIALS, VOWELS, is_syllable, join_syllable, list_slips, split_syllable, take_initials
from munjang.text.korean import tag_morphemes

WRITTEN_BOTH = re.compile(r"([가-힣]{2,6})\(([\u4e00-\u9fff]{2,6})[),;]")
SHARE = 0.1


def list_other_letters(syllable: str) -> list[str]:
    """Return the syllables that differ by one letter."""
    initial, vowel, final = split_syllable(syllable)
    others = [join_syllable(each, vowel, final) for each in INITIALS] + [join_syllable(initial, each, final) for each in VOWELS]
    return [each for each in [*others, *(join_syllable(initial, vowel, each) for each in FINALS)] if each != syllable]


def mistype(text: str, chance: random.Random, others: Callable[[str], Any]) -> str:
    """Return a text in which a tenth of the syllables is another one."""
    places = [at for at, character in enumerate(text) if is_syllable(character)]
    changed = list(text)
    for at in chance.sample(places, round(len(places) * SHARE)):
        changed[at] = chance.choice([*others(text[at])] or [text[at]])
    return "".join(changed)


def write_hanja(questions: dict[str, str], corpus: dict[str, str], limit: int) -> dict[str, str]:
    """Return questions with a noun in Hanja, as some article writes it."""
    pairs = {hangul: hanja for text in corpus.values() for hangul, hanja in WRITTEN_BOTH.findall(text) if len(hangul) == len(hanja)}
    found = {}
    for name, text in questions.items():
        word = next((word for word, tag in tag_morphemes(text) if tag in ("NNG", "NNP") and word in pairs), None)
        if word is not None and len(found) < limit:
            found[name] = text.replace(word, pairs[word])
    return found


def write_initials(questions: dict[str, str], corpus: dict[str, str], limit: int) -> dict[str, str]:
    """Return names of questions that stand in one to three paragraphs, as their first consonants."""
    held = Counter(word for text in corpus.values() for word in set(re.findall("[가-힣]{3,8}", text)))
    found = {}
    for name, text in questions.items():
        word = next((word for word, tag in tag_morphemes(text) if tag == "NNP" and len(word) >= 3 and 1 <= held[word] <= 3), None)
        if word is not None and len(found) < limit:
            found[name] = take_initials(word)
    return found


def score(library: Library, questions: dict[str, str], judgements: Any, **options: Any) -> tuple[np.ndarray, float]:
    """Return nDCG@10 of each question, which has one paragraph, and the processor milliseconds that each took."""
    began = time.process_time()
    answers = library.search_many([*questions.values()], 10, **options)
    took = (time.process_time() - began) * 1_000 / max(len(questions), 1)
    ranks = [
        next((at for at, hit in enumerate(hits, start=1) if judgements[name].get(hit.id)), None)
        for name, hits in zip(questions, answers, strict=True)
    ]
    return np.array([0.0 if rank is None else 1 / math.log2(rank + 1) for rank in ranks]), took


def main() -> None:
    """Print what each kind of error costs, as typed and as understood."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--by", choices=("words", "meaning"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    task = read_retrieval(DATA / "korquad1-dev/KorQuAD_v1.0_dev.json.gz")
    chance = random.Random(0)
    clean = {name: task.queries[name] for name in chance.sample(sorted(task.queries), options.queries)}
    kinds = {
        "clean": clean,
        "no spaces": {name: "".join(text.split()) for name, text in clean.items()},
        "slips": {name: mistype(text, chance, list_slips) for name, text in clean.items()},
        "letters": {name: mistype(text, chance, list_other_letters) for name, text in clean.items()},
        "hanja": write_hanja(task.queries, task.corpus, 200),
        "initials": write_initials(task.queries, task.corpus, 200),
    }
    path = options.library or Path(tempfile.mkdtemp()) / "korquad.db"
    found = {}
    queries, documents = load_for_search(None, compute="float32")
    with Library.open(path, documents, query_encoder=queries) as library:
        library.add({"id": id, "text": text} for id, text in task.corpus.items())
        for kind, questions in kinds.items():
            (typed, first), (meant, second) = (
                score(library, questions, task.judgements, by=options.by, as_typed=as_typed) for as_typed in (True, False)
            )
            p = paired_bootstrap(meant, typed, resample_mean).p if (meant != typed).any() else 1.0
            rounded = {"typed": round(float(typed.mean()), 4), "meant": round(float(meant.mean()), 4), "p": round(p, 4)}
            found[kind] = {"questions": len(questions), **rounded, "milliseconds": [round(first, 1), round(second, 1)]}
            print(kind, found[kind], flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
