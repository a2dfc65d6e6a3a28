"""Every file layout that is known by name, declared as data: which columns, which separator, which range of scores, which labels.

`recognise.py` chooses among them and `read.py` reads by them. Adding a data set is adding an entry here. Order matters: the first that
fits is taken, so the particular stands before the general.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from munjang.evaluate.datasets.rows import DIFFERENT, NLI_LABELS, SAME, Kind, Scale

NLI = {label: label for label in NLI_LABELS}
_HANGUL = re.compile("[가-힣]")
BINARY = {"1": SAME, "0": DIFFERENT}
INVERTED = {"0": SAME, "1": DIFFERENT}


@dataclass(frozen=True)
class Layout:
    """One way to write a data set. `columns` goes from role (a, b, score, label, …) to a header name, or to a number without a header."""

    name: str
    kind: Kind
    columns: Mapping[str, str | int]
    header: bool = True
    exact: tuple[str, ...] = ()
    """The whole header, where only that will do; otherwise the columns used suffice."""
    widths: tuple[int, int] = (0, 0)
    """Fewest and most columns, where there is no header."""
    shapes: frozenset[str] = frozenset({"tab", "comma", "jsonl", "parquet", "json"})
    quoting: bool = True
    """Whether a quotation mark in a CSV or TSV file quotes, or is a character like any other."""
    scale: Scale | None = None
    labels: Mapping[str, str] | None = None
    unlabelled: frozenset[str] = frozenset()
    """Labels by which the makers of the data say that there is none."""
    group_size: int = 0
    """Consecutive rows that form one group; the label is then the group's number."""
    fits: Callable[[list[str]], bool] = field(default=lambda _cells: True)
    """A last look at the first row: the cells of `columns` in that order, or all cells where there is no header."""


def is_number(cell: str) -> bool:
    """Tell whether a cell reads as a number.

    >>> is_number("3.5"), is_number("entailment")
    (True, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def has_hangul(text: str) -> bool:
    """Tell whether a text holds a Hangul syllable."""
    return _HANGUL.search(text) is not None


_TAB = frozenset({"tab"})
_COMMA = frozenset({"comma"})
_PAIR: Mapping[str, str | int] = {"a": "sentence1", "b": "sentence2"}
_STSB = ("genre", "filename", "year", "id", "score", "sentence1", "sentence2")
_GLUE = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2", "score")
_QUESTIONS: Mapping[str, str | int] = {"a": "question1", "b": "question2", "label": "is_duplicate"}
_STS_ROLES: Mapping[str, str | int] = {"a": "sentence1", "b": "sentence2", "score": "score", "genre": "genre"}

_question_pair_ko = Layout(
    "question-pair-ko",
    "labelled",
    _QUESTIONS,
    exact=("question1", "question2", "is_duplicate"),
    shapes=_TAB,
    quoting=False,
    labels=INVERTED,
    fits=lambda cells: has_hangul("".join(cells[:2])),
)

LAYOUTS: tuple[Layout, ...] = (
    # scored pairs
    Layout("korsts", "scored", _STS_ROLES, exact=_STSB, shapes=_TAB, quoting=False, scale=(0, 5)),
    Layout("glue-stsb", "scored", _STS_ROLES, exact=_GLUE, shapes=_TAB, quoting=False, scale=(0, 5)),
    Layout(
        "stsb-original",
        "scored",
        {"genre": 0, "score": 4, "a": 5, "b": 6},
        header=False,
        widths=(7, 9),
        shapes=_TAB | _COMMA,
        quoting=False,
        scale=(0, 5),
        fits=lambda cells: is_number(cells[4]),
    ),
    Layout(
        "stsb-csv",
        "scored",
        {"a": 0, "b": 1, "score": 2},
        header=False,
        widths=(3, 3),
        shapes=_COMMA,
        scale=(0, 5),
        fits=lambda cells: is_number(cells[2]),
    ),
    Layout("klue-sts-json", "scored", {**_PAIR, "score": "labels.real-label", "genre": "source"}, shapes=frozenset({"json"}), scale=(0, 5)),
    Layout(
        "klue-sts",
        "scored",
        {**_PAIR, "score": "label"},
        exact=("sentence1", "sentence2", "label"),
        shapes=_COMMA,
        scale=(0, 5),
        # Its scores are written 0.0 and 1.0; a bare 0 or 1 under this header is a label for same or different.
        fits=lambda cells: cells[2] not in BINARY,
    ),
    # labelled pairs: natural language inference
    Layout("kornli", "labelled", {**_PAIR, "label": "gold_label"}, shapes=_TAB, quoting=False, labels=NLI, unlabelled=frozenset({"-"})),
    Layout(
        "snli-jsonl", "labelled", {**_PAIR, "label": "gold_label"}, shapes=frozenset({"jsonl"}), labels=NLI, unlabelled=frozenset({"-"})
    ),
    Layout("klue-nli", "labelled", {"a": "premise", "b": "hypothesis", "label": "gold_label"}, shapes=frozenset({"json"}), labels=NLI),
    Layout(
        "snli-tsv",
        "labelled",
        {"a": "premise", "b": "hypothesis", "label": "label"},
        shapes=_TAB,
        quoting=False,
        labels=NLI,
        unlabelled=frozenset({"-"}),
        fits=lambda cells: not is_number(cells[-1]),
    ),
    Layout(
        "xnli",
        "labelled",
        {"a": 0, "b": 1, "label": 2},
        header=False,
        widths=(3, 3),
        shapes=_TAB,
        quoting=False,
        labels=NLI,
        fits=lambda cells: cells[2] in NLI,
    ),
    # labelled pairs: same or different
    Layout(
        "pawsx",
        "labelled",
        {**_PAIR, "label": "label"},
        exact=("id", "sentence1", "sentence2", "label"),
        shapes=_TAB,
        quoting=False,
        labels=BINARY,
    ),
    Layout(
        "pawsx-xtreme",
        "labelled",
        {"a": 0, "b": 1, "label": 2},
        header=False,
        widths=(3, 3),
        shapes=_TAB,
        quoting=False,
        labels=BINARY,
        fits=lambda cells: cells[2] in BINARY and not cells[0].isdigit(),
    ),
    _question_pair_ko,
    replace(
        _question_pair_ko,
        name="question-pairs",
        exact=(),
        shapes=_TAB | _COMMA | {"jsonl", "parquet"},
        quoting=True,
        labels=BINARY,
        fits=lambda _: True,
    ),
    # texts
    Layout(
        "paraKQC",
        "texts",
        {"text": 2},
        header=False,
        widths=(3, 3),
        shapes=_TAB,
        quoting=False,
        group_size=10,
        fits=lambda cells: cells[0].isdigit() and cells[1].isdigit(),
    ),
    Layout("assembly-bills", "texts", {"text": "text", "label": "committee"}, shapes=_TAB, quoting=False),
    # pairs that belong together
    Layout("parallel-en-ko", "pairs", {"a": "en", "b": "ko"}, shapes=_TAB, quoting=False),
    Layout(
        "tatoeba",
        "pairs",
        {"a": 0, "b": 1},
        header=False,
        widths=(3, 3),
        shapes=_TAB,
        quoting=False,
        fits=lambda cells: "attribution" in cells[2].lower(),
    ),
    Layout("xtreme-unlabelled", "pairs", {"a": 0, "b": 1}, header=False, widths=(2, 2), shapes=_TAB, quoting=False),
)

BY_NAME = {layout.name: layout for layout in LAYOUTS}

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "a": ("sentence1", "text1", "sentence_a", "a", "premise", "question1", "query", "question", "anchor", "source", "src", "en", "english"),
    "b": tuple("sentence2 text2 sentence_b b hypothesis question2 positive passage answer document target tgt ko korean".split()),  # noqa: SIM905
    "score": ("score", "similarity", "similarity_score", "label"),
    "label": ("label", "gold_label", "labels", "class", "category", "is_duplicate"),
    "genre": ("genre", "source", "domain"),
    "anchor": ("anchor", "query", "sentence", "a"),
    "positive": ("positive", "pos", "b"),
    "negative": ("negative", "neg", "c"),
    "text": ("text", "sentence", "document", "content"),
}
"""Column names by which a plain file with a header says which column is which."""

ROLES: Mapping[Kind, tuple[str, ...]] = {
    "scored": ("a", "b", "score"),
    "labelled": ("a", "b", "label"),
    "pairs": ("a", "b"),
    "triplets": ("anchor", "positive", "negative"),
    "texts": ("text", "label"),
}
"""The columns that each kind of row cannot do without."""
