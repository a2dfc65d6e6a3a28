"""The data sets that came later → rows for `prepare.py`: translations, Korean NLI, paraphrases, headings and questions with their passages.

Pages of parallel documentation that `documentation.py` holds out are never read here. Shares are capped where a set would drown the others.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from documentation import Section, paragraphs, sections

from munjang.text.readers import read_rows

SEED = 1
LONGEST = 600
"""Characters of a passage."""

PYTHON_PAIRS = 12_000
"""Python's documentation is full of code; a third of the translations at most."""

HEADINGS = 16_000
HEADLINES, REVIEWS, UTTERANCES = 12_000, 8_000, 6_000
"""Texts of sets of which only the wording is used."""

Row = Sequence[str]


def documentation_pairs(data: Path) -> Iterator[Row]:
    """Yield paragraphs of documentation in English and Korean, each English one once."""
    seen: set[str] = set()
    python, others = list[Row](), list[Row]()
    for row in paragraphs(data, held_out=False):
        if 12 <= len(row.en) <= LONGEST and len(row.ko) >= 4 and row.en not in seen:
            seen.add(row.en)
            (python if row.page.startswith("python") else others).append((row.en, row.ko))
    random.Random(SEED).shuffle(python)
    yield from python[:PYTHON_PAIRS]
    yield from others


def safety_pairs(data: Path) -> Iterator[Row]:
    """Yield sentences and their translations; the set holds hateful statements, so it serves for vectors of translations only."""
    for row in read_rows(data / "safety-parallel-ko-en/pairs.tsv.gz"):
        yield str(row.values["en"]), str(row.values["ko"])


def paraphrases(data: Path) -> Iterator[Row]:
    """Yield two pairs of each group of paraphrases, and utterances with their core."""
    groups: dict[str, list[str]] = defaultdict(list)
    for row in read_rows(data / "stylekqc/groups.tsv.gz"):
        groups[str(row.values["group"])].append(str(row.values["sentence"]))
    for name, sentences in groups.items():
        random.Random(f"{SEED} {name}").shuffle(sentences)
        yield from ((sentences[at], sentences[at + 1]) for at in (0, 2) if at + 1 < len(sentences))
    cores = [(str(row.values["utterance"]), str(row.values["core"])) for row in read_rows(data / "sae4k/pairs.tsv.gz")]
    yield from random.Random(SEED).sample(cores, 6_000)


def headed_passages(data: Path) -> Iterator[Row]:
    """Yield headings of Korean documentation with their section; a heading that stands twice says too little."""
    found = [
        (str(row.values["heading"]).strip(), str(row.values["text"]))
        for name in ("ms-docs-ko/sections.tsv.gz", "ko-docs-sections/title_section.tsv.gz")
        for row in read_rows(data / name)
    ]
    often = Counter(heading for heading, _ in found)
    rows = [(heading, text[:LONGEST]) for heading, text in found if often[heading] == 1 and len(heading) >= 8 and len(text) >= 80]
    yield from random.Random(SEED).sample(rows, min(HEADINGS, len(rows)))


def asked_passages(data: Path) -> Iterator[Row]:
    """Yield questions with what answers them: questions of documentation, titles with descriptions, yes-no questions with facts."""
    for row in read_rows(data / "ms-docs-ko/faq_questions.tsv.gz"):
        yield str(row.values["question"]), str(row.values["answer"])[:LONGEST]
    for row in read_rows(data / "ms-docs-ko/title_description.tsv.gz"):
        yield str(row.values["title"]), str(row.values["description"])[:LONGEST]
    for row in read_rows(data / "strategyqa-ko/qa.tsv.gz"):
        yield str(row.values["question"]), str(row.values["facts"])[:LONGEST]


def crossed_sections(data: Path) -> Iterator[Row]:
    """Yield headings with their section in the other language."""
    for at, section in enumerate(sections(data, held_out=False)):
        yield cross(section, to_english=at % 3 != 0)


def cross(section: Section, *, to_english: bool) -> Row:
    """Return a Korean heading with its English section, or the other way round."""
    if to_english:
        return section.heading.ko, section.en[:LONGEST]
    return section.heading.en, section.ko[:LONGEST]


def other_texts(data: Path) -> Iterator[Row]:
    """Yield Korean headlines, reviews and utterances, headings and questions: short texts to learn a teacher's vectors from."""
    for name, column, count in (
        ("klue-ynat-headlines/train.tsv.gz", "title", HEADLINES),
        ("nsmc-raw/reviews.tsv.gz", "review", REVIEWS),
        ("3i4k/utterances.tsv.gz", "utterance", UTTERANCES),
    ):
        rows = [str(row.values[column]) for row in read_rows(data / name)]
        yield from ((text,) for text in random.Random(SEED).sample(rows, count) if len(text) >= 6)
    for heading, _ in [*headed_passages(data), *asked_passages(data)]:
        yield (heading,)
