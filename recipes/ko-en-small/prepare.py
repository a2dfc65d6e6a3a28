"""The data files of ../shared/data → the training files of ko-en-small: pairs, triplets, scores, plain texts.

Left out of everything: each text that stands in the dev or test part of a set that is reported (KorSTS, STSb, KLUE-NLI, KorQuAD, TyDi QA),
in either language and whatever its letter case and punctuation; XNLI (its licence); 1,500 Tatoeba pairs, which are written apart: 500 to
choose on and 1,000 to measure with.
The files stay outside the repository. What later data sets give is in `more_data.py`.

    python recipes/ko-en-small/prepare.py ../shared/data -o runs/ko-en-small/data
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import more_data

from munjang.data import read_labelled_pairs, read_scored_pairs
from munjang.data.retrieval import read_squad
from munjang.text.korean import has_hangul
from munjang.text.readers import read_rows
from munjang.text.unicode import clean as normal

SEED = 1
HELD_OUT, CHOSEN_ON = 1_000, 500
"""Tatoeba pairs to measure with, and to choose on."""

SCORED = ("korsts/sts-train.tsv.gz", "klue-sts/klue_sts_train.csv.gz", "stsb-en/stsb-en-train.csv.gz")
LONGEST = 600
"""Characters of a passage: about 256 pieces, what training reads of it."""

CLOZE_BILLS, LONG_BILLS = 2_000, 1_500
SENTENCES = 16_000
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")

Row = Sequence[str]


def main() -> None:
    """Write every training file and say how many rows it has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    data, reported = chosen.data, reported_texts(chosen.data)
    tatoeba = tatoeba_pairs(data)
    apart, rest = tatoeba[: HELD_OUT + CHOSEN_ON], tatoeba[HELD_OUT + CHOSEN_ON :]
    forbidden = reported | {leak_key(text) for pair in apart for text in pair}
    files: dict[str, tuple[Row, Iterable[Row]]] = {
        "tatoeba-test.tsv": (("en", "ko"), apart[:HELD_OUT]),
        "tatoeba-dev.tsv": (("en", "ko"), apart[HELD_OUT:]),
        "parallel.tsv": (("en", "ko"), [*parallel_pairs(data), *rest]),
        "triplets-en.tsv": (("anchor", "positive", "negative"), triplets(data / "snli/snli_train_subset.tsv.gz")),
        "questions.tsv": (("a", "b"), same_questions(data)),
        "passages.tsv": (("question", "passage"), question_passages(data)),
        "bills.tsv": (("title", "text"), bill_titles(data)),
        "cloze.tsv": (("sentence", "passage"), clozes(data)),
        "long.tsv": (("text",), ((text,) for text in long_texts(data))),
        "sts.tsv": (("sentence1", "sentence2", "score"), scores(data)),
        "sts-crossed.tsv": (("sentence1", "sentence2", "score"), crossed_scores(data)),
        "texts-ko.tsv": (("text",), ((text,) for text in plain_texts(data) if has_hangul(text))),
        "texts-en.tsv": (("text",), ((text,) for text in plain_texts(data) if not has_hangul(text))),
        "sentences-en.tsv": (("text",), english_sentences(data)),
        "parallel-sts.tsv": (("en", "ko"), sts_translations(data)),
        "parallel-docs.tsv": (("en", "ko"), more_data.documentation_pairs(data)),
        "parallel-safety.tsv": (("en", "ko"), more_data.safety_pairs(data)),
        "triplets-ko.tsv": (("anchor", "positive", "negative"), triplets(data / "klue-nli-train/train.tsv.gz")),
        "paraphrases.tsv": (("a", "b"), more_data.paraphrases(data)),
        "headings.tsv": (("question", "passage"), more_data.headed_passages(data)),
        "asked.tsv": (("question", "passage"), more_data.asked_passages(data)),
        "crossed.tsv": (("question", "passage"), more_data.crossed_sections(data)),
        "texts-more.tsv": (("text",), more_data.other_texts(data)),
    }
    for name, (header, rows) in files.items():
        count = write(chosen.output / name, header, rows, forbidden=frozenset() if name.startswith("tatoeba") else forbidden)
        print(f"{name}: {count:,} rows")


def reported_texts(data: Path) -> frozenset[str]:
    """Return every text of the dev and test parts that results are reported on."""
    scored = [data / f"korsts/sts-{part}.tsv.gz" for part in ("dev", "test")]
    scored += [data / f"stsb-en/stsb-en-{part}.csv.gz" for part in ("dev", "test")]
    found = {leak_key(text) for path in scored for pair in read_scored_pairs(path).rows for text in (pair.a, pair.b)}
    asked = [read_squad(data / name) for name in ("korquad1-dev/KorQuAD_v1.0_dev.json.gz", "tydiqa-ko/dev.json.gz")]
    found |= {leak_key(text) for task in asked for text in [*task.corpus.values(), *task.queries.values()]}
    judged = read_labelled_pairs(data / "klue-nli/klue-nli-v1.1_dev.json.gz").rows
    return frozenset(found | {leak_key(text) for pair in judged for text in (pair.a, pair.b)})


def leak_key(text: str) -> str:
    """Return what two texts share that differ in letter case, spaces and punctuation alone.

    >>> leak_key("A man is  playing.") == leak_key("a man is playing")
    True
    """
    return "".join(letter for letter in normal(text).casefold() if letter.isalnum()) or normal(text)


def tatoeba_pairs(data: Path) -> list[Row]:
    """Return the Tatoeba pairs in a drawn order, each English and each Korean sentence once: the first ones are held out."""
    rows = [(row["en"], row["ko"]) for row in parallel_rows(data) if row["source"] == "tatoeba"]
    random.Random(SEED).shuffle(rows)
    seen: set[str] = set()
    once = []
    for en, ko in rows:
        if not {en, ko} & seen:
            once.append((en, ko))
            seen |= {en, ko}
    apart = once[: HELD_OUT + CHOSEN_ON]
    return [*apart, *(pair for pair in rows if pair not in set(apart))]


def parallel_pairs(data: Path) -> Iterator[Row]:
    """Yield English and Korean sides of training splits, and of the dev splits of sets on which nothing is reported."""
    used = {("korsts", "train"), ("news", "dev"), ("jhe", "dev"), ("pawsx", "dev")}
    return ((row["en"], row["ko"]) for row in parallel_rows(data) if (row["source"], row["split"]) in used)


def sts_translations(data: Path) -> Iterator[Row]:
    """Yield the sentences of STSb train with those of KorSTS train, which are their translations."""
    return ((row["en"], row["ko"]) for row in parallel_rows(data) if (row["source"], row["split"]) == ("korsts", "train"))


def parallel_rows(data: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of the parallel file."""
    for row in read_rows(data / "parallel-en-ko/parallel-en-ko.tsv.gz"):
        yield {name: str(value) for name, value in row.values.items()}


def triplets(path: Path) -> Iterator[Row]:
    """Yield premise, a sentence that follows from it, and one that contradicts it."""
    by_premise: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in read_labelled_pairs(path).rows:
        by_premise[row.a][row.label].append(row.b)
    for premise, found in by_premise.items():
        for follows, contradicts in zip(found["entailment"], found["contradiction"], strict=False):
            yield premise, follows, contradicts


def same_questions(data: Path) -> Iterator[Row]:
    """Yield different wordings of one question: the pairs that are labelled so, and neighbours within ParaKQC's groups."""
    for row in read_rows(data / "question-pair-ko/train.txt.gz", format="tsv", header=True):
        if str(row.values["is_duplicate"]) == "0" and row.values["question1"] != row.values["question2"]:
            yield str(row.values["question1"]), str(row.values["question2"])
    lines = [str(row.values["text"]).split("\t") for row in read_rows(data / "paraKQC/paraKQC_v1.txt.gz", format="txt")]
    for start in range(0, len(lines) - 9, 10):
        group = [line[-1] for line in lines[start : start + 10]]
        random.Random(f"{SEED} {start}").shuffle(group)
        yield from ((group[at], group[at + 1]) for at in range(0, 6, 2))


def question_passages(data: Path) -> Iterator[Row]:
    """Yield questions with the passage that answers them."""
    task = read_squad(data / "tydiqa-ko/train.json.gz")
    for query, documents in task.judgements.items():
        yield task.queries[query], task.corpus[next(iter(documents))][:LONGEST]


def bill_titles(data: Path) -> Iterator[Row]:
    """Yield each title of a bill once, with the text of its first bill."""
    seen: set[str] = set()
    for row in read_rows(data / "korean-assembly-bills/bills_14x500.tsv.gz"):
        title = str(row.values["title"])
        if title not in seen:
            seen.add(title)
            yield title, str(row.values["text"])[:LONGEST]


def clozes(data: Path) -> Iterator[Row]:
    """Yield a sentence of a passage and the passage without it: search to learn from where nobody asked a question."""
    passages = read_squad(data / "tydiqa-ko/train.json.gz").corpus.values()
    bills = [str(row.values["text"]) for row in read_rows(data / "korean-assembly-bills/bills_14x500.tsv.gz")]
    random.Random(SEED).shuffle(bills)
    for text in [*passages, *bills[:CLOZE_BILLS]]:
        sentences = [part.strip() for part in SENTENCE_END.split(text[:LONGEST]) if len(part) > 15]
        if len(sentences) > 2:
            asked = random.Random(text).choice(sentences)
            yield asked, " ".join(part for part in sentences if part != asked)


def long_texts(data: Path) -> Iterator[str]:
    """Yield long texts, so that the small model keeps its teacher's reading of them: passages, bills, and sentences strung together."""
    for passage in read_squad(data / "tydiqa-ko/train.json.gz").corpus.values():
        yield passage[: 2 * LONGEST]
    bills = [str(row.values["text"]) for row in read_rows(data / "korean-assembly-bills/bills_14x500.tsv.gz")]
    random.Random(SEED + 1).shuffle(bills)
    yield from (text[: 2 * LONGEST] for text in bills[:LONG_BILLS])
    for language in (0, 1):
        sentences = [row[language] for row in parallel_pairs(data)]
        drawn = random.Random(SEED + language)
        drawn.shuffle(sentences)
        while sentences:
            some = drawn.randint(4, 14)
            yield " ".join(sentences[:some])
            del sentences[:some]


def scores(data: Path) -> Iterator[Row]:
    """Yield the scored training pairs of KorSTS, KLUE-STS and STSb, 0 to 5."""
    for path in (data / name for name in SCORED):
        yield from ((pair.a, pair.b, f"{pair.score * 5:g}") for pair in read_scored_pairs(path).rows)


def crossed_scores(data: Path) -> Iterator[Row]:
    """Yield scored pairs with one side in English and the other in Korean: the training rows of KorSTS and STSb are aligned."""
    korean = read_scored_pairs(data / "korsts/sts-train.tsv.gz").rows
    english = read_scored_pairs(data / "stsb-en/stsb-en-train.csv.gz").rows
    for at, (ko, en) in enumerate(zip(korean, english, strict=True)):
        a, b = (en.a, ko.b) if at % 2 else (ko.a, en.b)
        yield a, b, f"{ko.score * 5:g}"


def plain_texts(data: Path) -> Iterator[str]:
    """Yield every text that may be trained on, Korean and English, sentences and passages, each once."""
    pairs: list[Iterable[Row]] = [
        parallel_pairs(data),
        tatoeba_pairs(data)[HELD_OUT + CHOSEN_ON :],
        same_questions(data),
        question_passages(data),
        bill_titles(data),
    ]
    found = [text for rows in pairs for row in rows for text in row]
    for path in (data / name for name in SCORED):
        found += [text for pair in read_scored_pairs(path).rows for text in (pair.a, pair.b)]
    for path in (data / "klue-nli-train/train.tsv.gz", data / "snli/snli_train_subset.tsv.gz"):
        found += [text for pair in read_labelled_pairs(path).rows for text in (pair.a, pair.b)]
    for row in read_rows(data / "chatbot-ko/ChatbotData.csv.gz"):
        found += [str(row.values["Q"]), str(row.values["A"])]
    for row in read_rows(data / "korean-assembly-bills/bills_14x500.tsv.gz"):
        found += [part.strip() + "." for part in str(row.values["text"])[:LONGEST].split(". ") if len(part) > 20][:3]
    yield from dict.fromkeys(found)


def english_sentences(data: Path) -> list[Row]:
    """Return some sentences of SNLI, of which there is no translation."""
    pairs = read_labelled_pairs(data / "snli/snli_train_subset.tsv.gz").rows
    return [(text,) for text in random.Random(SEED).sample(sorted({text for pair in pairs for text in (pair.a, pair.b)}), SENTENCES)]


def write(path: Path, header: Row, rows: Iterable[Row], *, forbidden: frozenset[str]) -> int:
    """Write rows without forbidden texts as TSV; return how many."""
    count = 0
    with path.open("w", encoding="utf-8") as stream:
        stream.write("\t".join(header) + "\n")
        for row in dict.fromkeys(tuple(" ".join(cell.split()) for cell in row) for row in rows):
            if all(row) and not any(leak_key(cell) in forbidden for cell in row):
                stream.write("\t".join(row) + "\n")
                count += 1
    return count


if __name__ == "__main__":
    main()
