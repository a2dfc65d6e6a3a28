"""Every file layout that is known by name, declared as data: which columns, which separator, which range of scores, which labels.

`recognise.py` chooses among them and `read.py` reads by them. Adding a data set is adding an entry here. Order matters: the first that
fits is taken, so the particular stands before the general.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from munjang.data.rows import DIFFERENT, NLI_LABELS, SAME, Kind, Scale

NLI = {label: label for label in NLI_LABELS}
_HANGUL = re.compile("[가-힣]")
BINARY = {"1": SAME, "0": DIFFERENT}
INVERTED = {"0": SAME, "1": DIFFERENT}


@dataclass(frozen=True)
class DatasetLayout:
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
_BY_PLACE: Mapping[str, str | int] = {"a": 0, "b": 1, "label": 2}
_NLI_OR_NONE: dict[str, Any] = {"labels": NLI, "unlabelled": frozenset({"-"})}
_tabbed = partial(DatasetLayout, shapes=_TAB, quoting=False)
_bare = partial(_tabbed, header=False)
"""Lines of cells between tabs, where a quotation mark is a character; `_bare` ones have no header."""

LAYOUTS: tuple[DatasetLayout, ...] = (
    # scored pairs
    _tabbed("korsts", "scored", _STS_ROLES, exact=_STSB, scale=(0, 5)),
    _tabbed("glue-stsb", "scored", _STS_ROLES, exact=_GLUE, scale=(0, 5)),
    replace(
        _bare("stsb-original", "scored", {"genre": 0, "score": 4, "a": 5, "b": 6}, widths=(7, 9), scale=(0, 5)),
        shapes=_TAB | _COMMA,
        fits=lambda cells: is_number(cells[4]),
    ),
    replace(
        _bare("stsb-csv", "scored", {"a": 0, "b": 1, "score": 2}, widths=(3, 3), scale=(0, 5), fits=lambda cells: is_number(cells[2])),
        shapes=_COMMA,
        quoting=True,
    ),
    DatasetLayout(
        "klue-sts-json", "scored", {**_PAIR, "score": "labels.real-label", "genre": "source"}, shapes=frozenset({"json"}), scale=(0, 5)
    ),
    # Its scores are written 0.0 and 1.0; a bare 0 or 1 under this header is a label for same or different.
    replace(
        _tabbed("klue-sts", "scored", {**_PAIR, "score": "label"}, exact=("sentence1", "sentence2", "label"), scale=(0, 5)),
        shapes=_COMMA,
        quoting=True,
        fits=lambda cells: cells[2] not in BINARY,
    ),
    # labelled pairs: natural language inference
    _tabbed("kornli", "labelled", {**_PAIR, "label": "gold_label"}, **_NLI_OR_NONE),
    DatasetLayout("snli-jsonl", "labelled", {**_PAIR, "label": "gold_label"}, shapes=frozenset({"jsonl"}), **_NLI_OR_NONE),
    DatasetLayout(
        "klue-nli", "labelled", {"a": "premise", "b": "hypothesis", "label": "gold_label"}, shapes=frozenset({"json"}), labels=NLI
    ),
    _tabbed(
        "snli-tsv",
        "labelled",
        {"a": "premise", "b": "hypothesis", "label": "label"},
        fits=lambda cells: not is_number(cells[-1]),
        **_NLI_OR_NONE,
    ),
    _bare("xnli", "labelled", _BY_PLACE, widths=(3, 3), labels=NLI, fits=lambda cells: cells[2] in NLI),
    # labelled pairs: same or different
    _tabbed("pawsx", "labelled", {**_PAIR, "label": "label"}, exact=("id", "sentence1", "sentence2", "label"), labels=BINARY),
    _bare(
        "pawsx-xtreme",
        "labelled",
        _BY_PLACE,
        widths=(3, 3),
        labels=BINARY,
        fits=lambda cells: cells[2] in BINARY and not cells[0].isdigit(),
    ),
    _tabbed(
        "question-pair-ko",
        "labelled",
        _QUESTIONS,
        exact=("question1", "question2", "is_duplicate"),
        labels=INVERTED,
        fits=lambda cells: has_hangul("".join(cells[:2])),
    ),
    DatasetLayout("question-pairs", "labelled", _QUESTIONS, shapes=_TAB | _COMMA | {"jsonl", "parquet"}, labels=BINARY),
    # texts
    _bare("paraKQC", "texts", {"text": 2}, widths=(3, 3), group_size=10, fits=lambda cells: cells[0].isdigit() and cells[1].isdigit()),
    _tabbed("assembly-bills", "texts", {"text": "text", "label": "committee"}),
    # pairs that belong together
    _tabbed("parallel-en-ko", "pairs", {"a": "en", "b": "ko"}),
    _bare("tatoeba", "pairs", {"a": 0, "b": 1}, widths=(3, 3), fits=lambda cells: "attribution" in cells[2].lower()),
    _bare("xtreme-unlabelled", "pairs", {"a": 0, "b": 1}, widths=(2, 2)),
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
