"""The data files → one text a line: what ko-en-small's vocabulary is pruned to and what it is distilled on.

    python recipes/ko-en-small/gather_texts.py ../shared/data -o runs/texts.txt --words runs/words-en.txt

Training splits only. No text that stands in a dev or test set that is reported is written, whatever file it comes from; Tatoeba, PAWS-X and
XNLI are left out altogether, since they are only tested on. Each text once, in the order of the files.

The data holds little English besides captions. So `--words` also writes common English words, from the vocabulary of all-MiniLM-L6-v2, each
small and capitalised: the vocabulary is pruned to them too, nothing is trained on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from munjang.data import read_any, read_squad
from munjang.data.files import read_text
from munjang.models.registry import resolve
from munjang.text.readers import read_rows
from munjang.text.tokenizer_files import read_tokenizer_files

SETS = (
    "korsts/sts-train.tsv.gz",
    "stsb-en/stsb-en-train.csv.gz",
    "klue-sts/klue_sts_train.csv.gz",
    "snli/snli_train_subset.tsv.gz",
    "paraKQC/paraKQC_v1.txt.gz",
    "question-pair-ko/train.txt.gz",
)
HELD_OUT = (
    "korsts/sts-dev.tsv.gz",
    "korsts/sts-test.tsv.gz",
    "stsb-en/stsb-en-dev.csv.gz",
    "stsb-en/stsb-en-test.csv.gz",
    "snli/snli_test.tsv.gz",
    "question-pair-ko/validation.txt.gz",
    "question-pair-ko/test.txt.gz",
    "klue-nli/klue-nli-v1.1_dev.json.gz",
)
LINES = ("korean-english-park.dev", "jhe-koen-dev")


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description="Gather the texts of the data files, one a line.")
    parser.add_argument("data", type=Path, help="the folder with the data sets")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.add_argument("--words", type=Path, help="also write common English words to this file")
    options = parser.parse_args()
    held_out = {one_line(text) for name in HELD_OUT for text in texts_of(options.data / name)}
    found = dict.fromkeys(line for text in gathered(options.data) if (line := one_line(text)) and line not in held_out)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    print(f"{len(found):,} texts, {sum(map(len, found)):,} characters")
    if options.words:
        options.words.write_text("".join(f"{word} {word.capitalize()}\n" for word in english_words()), encoding="utf-8")


def english_words() -> list[str]:
    """Return the whole words of all-MiniLM-L6-v2's vocabulary, most frequent first."""
    data = read_tokenizer_files(resolve("all-MiniLM-L6-v2").path).data
    return [piece for piece in data["model"]["vocab"] if piece.isascii() and piece.isalpha() and len(piece) > 1]


def gathered(data: Path) -> Iterator[str]:
    """Yield every text that may be learnt from, with repetitions."""
    for name in SETS:
        yield from texts_of(data / name)
    for row in read_rows(data / "parallel-en-ko/parallel-en-ko.tsv.gz"):
        if row.values["source"] == "korsts" and row.values["split"] == "train":
            yield from (row.values["en"], row.values["ko"])
    for name in LINES:
        for language in ("en", "ko"):
            yield from read_text(data / f"korean-parallel-news/{name}.{language}.gz").split("\n")
    for row in read_rows(data / "chatbot-ko/ChatbotData.csv.gz"):
        yield from (row.values["Q"], row.values["A"])
    for row in read_rows(data / "korean-assembly-bills/bills_14x500.tsv.gz"):
        yield from (row.values["title"], row.values["text"])
    questions = read_squad(data / "tydiqa-ko/train.json.gz")
    yield from questions.queries.values()
    yield from questions.corpus.values()


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a data set, whatever its rows are."""
    for row in read_any(path).rows:
        for role in ("a", "b", "text"):
            if hasattr(row, role):
                yield getattr(row, role)


def one_line(text: str) -> str:
    """Return a text without line breaks and repeated white space."""
    return " ".join(text.split())


if __name__ == "__main__":
    main()
