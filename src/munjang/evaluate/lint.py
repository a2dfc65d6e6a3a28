"""One data file or two (train, test) → findings: what in the data would spoil a training or make a score untrue.

In: paths (read by `data`), or rows. Out: findings with severity, count, examples by file and line, and advice, gravest first. Each check of
one file takes rows and returns the findings of one kind, none if all is well; a `LintRow` is a row reduced to what every kind of data has.
Between two files: which rows of the test are in the train, exactly, but for case and spaces, with sides swapped, or nearly (by character
n-grams, `shingles.py`). A pair in both files makes a test score untrue, so it is an error; a single sentence in both is common where
sentences stand in several pairs, so it is a warning.
"""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from munjang.data.layouts import has_hangul
from munjang.data.read import AS_FOUND, AnyDataset, ReadOptions, read_any
from munjang.data.rows import DIFFERENT, SAME, LabelledPair, LabelledText, ScoredPair, TextPair, Triplet
from munjang.errors import quote
from munjang.evaluate.bootstrap import to_jsonable
from munjang.evaluate.metrics import pearson
from munjang.evaluate.shingles import find_near_duplicates
from munjang.wording import brief_repr, count, plural

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_EXAMPLES = 5


@brief_repr
@dataclass(frozen=True, slots=True)
class LintRow:
    """The texts of one row, its label or score in words, how alike it says they are (None: it does not say), and its place."""

    texts: tuple[str, ...]
    label: str
    alike: float | None
    where: str


@brief_repr
@dataclass(frozen=True)
class LintFinding:
    """One thing that is wrong or worth knowing; `examples` are places (file and line), never texts."""

    check: str
    severity: Severity
    count: int
    message: str
    advice: str
    examples: tuple[str, ...] = ()


def report_places(check: str, severity: Severity, places: Sequence[str], message: str, advice: str) -> list[LintFinding]:
    """Return a finding that counts all places and names the first few; none where there are no places."""
    return [LintFinding(check, severity, len(places), message, advice, tuple(places[:_EXAMPLES]))] if places else []


def normalise_text(text: str) -> str:
    """Return a text as two careless writers would agree on it: NFC, lower case, single spaces.

    >>> normalise_text("  A  Man ")
    'a man'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def make_lint_rows(data: AnyDataset) -> list[LintRow]:
    """Return any data set's rows in the form that the checks read."""
    return [_make_lint_row(row) for row in data.rows]


def _make_lint_row(row: ScoredPair | LabelledPair | TextPair | Triplet | LabelledText) -> LintRow:
    match row:
        case ScoredPair():
            return LintRow((row.a, row.b), f"{row.score:g}", row.score, row.where)
        case LabelledPair():
            alike = {SAME: 1.0, DIFFERENT: 0.0, "entailment": 1.0, "contradiction": 0.0}.get(row.label)
            return LintRow((row.a, row.b), row.label, alike, row.where)
        case TextPair():
            return LintRow((row.a, row.b), "", None, row.where)
        case Triplet():
            return LintRow((row.anchor, row.positive, row.negative), "", None, row.where)
        case LabelledText():
            return LintRow((row.text,), row.label, None, row.where)


_DOUBTFUL: tuple[str, Severity] = ("scale", "warning")
_REMARK: tuple[str, Severity] = ("reading", "info")
_LONG = 2_000  # characters; past what most sentence models read
_ENOUGH = 30  # rows below which a correlation says nothing


def check_reading(data: AnyDataset) -> list[LintFinding]:
    """Report rows that could not be read, and what the reader wondered about."""
    unlabelled = [message for message in data.skipped if message.endswith("without a label")]
    bad = [message for message in data.skipped if not message.endswith("without a label")]
    out_of_range = sum(": the score is " in message for message in bad) > len(bad) / 2
    advice = "state the scale of the file (--scale 0 5), or mend the lines" if out_of_range else "mend the lines, or skip them on purpose"
    found = report_places("bad-rows", "error", bad, f"{data.source}: {count(len(bad), 'row')} cannot be read", advice)
    message = f"{data.source}: {count(len(unlabelled), 'row')} without a label"
    found += report_places("unlabelled", "info", unlabelled, message, "nothing: they are left out")
    for note in data.notes:
        check, severity = _DOUBTFUL if "scale" in note else _REMARK
        found.append(LintFinding(check, severity, 1, f"{data.source}: {note}", "check it by eye"))
    return found


def check_identical(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report pairs of one and the same sentence that are labelled as unlike: the mark of inverted labels."""
    same = [row for row in rows if len(row.texts) == 2 and row.alike is not None and len(set(map(normalise_text, row.texts))) == 1]
    wrong = [row.where for row in same if row.alike is not None and row.alike < 0.5]
    message = f"{len(wrong)} of {count(len(same), 'pair')} of identical sentences {plural(len(wrong), 'is')} labelled as different"
    if len(wrong) > len(same) / 2:
        advice = "the labels look inverted: state what they mean when reading"
        return report_places("inverted-labels", "error", wrong, message, advice)
    return report_places("identical-but-different", "warning", wrong, message, "check these rows")


def check_overlap(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report labels that fall while shared words rise."""
    pairs = [row for row in rows if len(row.texts) == 2 and row.alike is not None]
    if len(pairs) < _ENOUGH:
        return []
    shared = [_measure_shared_words(*row.texts) for row in pairs]
    correlation = pearson(shared, [row.alike or 0.0 for row in pairs])
    if not correlation < -0.1:
        return []
    message = f"labels fall as pairs share more words (correlation {correlation:.2f})"
    places = [row.where for row, words in zip(pairs, shared, strict=True) if words > 0.9 and (row.alike or 0.0) < 0.5]
    return [
        LintFinding("inverted-labels", "warning", len(pairs), message, "look whether high means different in this file", tuple(places[:5]))
    ]


def check_balance(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report labels of one kind only, and labels that hardly occur."""
    labels = Counter(row.label for row in rows if row.label)
    if not labels:
        return []
    if len(labels) == 1:
        message = f"every row has the label {quote(next(iter(labels)))}"
        return [LintFinding("one-class", "error", len(rows), message, "nothing can be learnt or measured; add other rows")]
    if len(labels) > 20:  # scores or groups rather than classes
        return []
    rare = {label: size for label, size in labels.items() if size < 0.02 * len(rows)}
    places = [row.where for row in rows if row.label in rare]
    listed = ", ".join(f"{quote(label, 30)} {count(size, 'time')}" for label, size in sorted(rare.items())[:5])
    return report_places("rare-label", "info", places, f"labels that hardly occur: {listed}", "check for typing errors in labels")


def check_duplicates(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report rows that repeat an earlier one (pairs in either order), apart where their labels agree and where they contradict."""
    groups: defaultdict[tuple[str, ...], list[LintRow]] = defaultdict(list)
    for row in rows:
        texts = tuple(map(normalise_text, row.texts))
        groups[tuple(sorted(texts)) if len(texts) == 2 else texts].append(row)
    repeated = [group for group in groups.values() if len(group) > 1]
    agreeing = [group for group in repeated if not _contradict(group)]
    against = [group for group in repeated if _contradict(group)]
    places = [" and ".join(row.where for row in group[:3]) for group in against]
    message = f"labels contradict each other for {count(len(against), 'text or pair')}"
    found = report_places("contradictory-duplicates", "error", places, message, "decide each by hand, or leave them out")
    places = [row.where for group in agreeing for row in group[1:]]
    advice = "leave repeats out; in-batch negatives would push equal texts apart"
    return found + report_places("duplicates", "warning", places, f"{count(len(places), 'repeat')} of an earlier row", advice)


def check_wordless(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report texts without a letter or digit."""
    places = [row.where for row in rows if any(not any(ch.isalnum() for ch in text) for text in row.texts)]
    message = f"{count(len(places), 'row')} with a text without a letter or digit"
    return report_places("wordless", "warning", places, message, "look at them; leave them out")


def check_languages(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report rows in another script than most: Hangul where it is rare, or none where it is usual."""
    if not rows:
        return []
    hangul = [any(map(has_hangul, row.texts)) for row in rows]
    few = sum(hangul) / len(rows) < 0.5
    places = [row.where for row, korean in zip(rows, hangul, strict=True) if korean == few]
    if not 0 < len(places) <= 0.4 * len(rows):
        return []
    how = "with Hangul where most have none" if few else "without Hangul where most have it"
    message = f"{len(places)} of {count(len(rows), 'row')} {how}"
    return report_places("language-mix", "info", places, message, "fine if the set is meant to be mixed")


def check_lengths(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Report texts far longer than the rest, which a sentence model would cut or window."""
    if not rows:
        return []
    lengths = [max(map(len, row.texts)) for row in rows]
    usual = statistics.median(lengths)
    places = [row.where for row, length in zip(rows, lengths, strict=True) if length > max(_LONG, 5 * usual)]
    limit = int(max(_LONG, 5 * usual))
    message = f"{count(len(places), 'text')} {plural(len(places), 'is')} longer than {limit:,} characters (median {usual:.0f})"
    return report_places("long-texts", "info", places, message, "expect windows or truncation; split them into paragraphs")


def _contradict(group: Sequence[LintRow]) -> bool:
    known = [row.alike for row in group if row.alike is not None]
    if len(known) == len(group):
        return max(known) - min(known) > 0.25
    return len({row.label for row in group}) > 1


def _measure_shared_words(a: str, b: str) -> float:
    left, right = set(normalise_text(a).split()), set(normalise_text(b).split())
    return len(left & right) / max(1, len(left | right))


_NEAR = 0.8


def find_overlap(train: Sequence[LintRow], test: Sequence[LintRow]) -> list[LintFinding]:
    """Return the findings on what two files share; each row of the test is counted under the strictest match only."""
    exact = {row.texts: row.where for row in train}
    folded = {tuple(map(normalise_text, row.texts)): row.where for row in train}
    swapped = {texts[::-1]: where for texts, where in folded.items() if len(texts) == 2}
    places: dict[str, list[str]] = {"exact": [], "normalised": [], "swapped": []}
    rest: list[LintRow] = []
    for row in test:
        key = tuple(map(normalise_text, row.texts))
        if row.texts in exact:
            places["exact"].append(f"{row.where} = {exact[row.texts]}")
        elif key in folded:
            places["normalised"].append(f"{row.where} = {folded[key]}")
        elif key in swapped:
            places["swapped"].append(f"{row.where} = {swapped[key]}")
        else:
            rest.append(row)
    return [*_report_repeats(places, len(test)), *_report_near(train, rest), *_report_sentences(train, rest)]


def _report_repeats(places: dict[str, list[str]], total: int) -> list[LintFinding]:
    words = {"exact": "word for word", "normalised": "but for case, spaces or Unicode form", "swapped": "with the sides swapped"}
    found = []
    for how, repeats in places.items():
        message = f"{len(repeats)} of {total} test rows are in the train file {words[how]}"
        found += report_places(f"overlap-{how}", "error", repeats, message, "leave them out of the train file")
    return found


def _report_near(train: Sequence[LintRow], rest: Sequence[LintRow]) -> list[LintFinding]:
    left, right = ([_join_texts(row) for row in rows] for rows in (train, rest))
    found, cut = find_near_duplicates(left, right, threshold=_NEAR)
    places = [f"{rest[near.right].where} ≈ {train[near.left].where} ({near.jaccard:.2f})" for near in found]
    message = f"{len(found)}{' or more' if cut else ''} test rows nearly repeat a train row (n-gram overlap ≥ {_NEAR:g})"
    return report_places("overlap-near", "warning", places, message, "look at them; leave true repeats out of the train file")


def _report_sentences(train: Sequence[LintRow], rest: Sequence[LintRow]) -> list[LintFinding]:
    if not rest or len(rest[0].texts) < 2:
        return []
    known = {normalise_text(text) for row in train for text in row.texts}
    places = [row.where for row in rest if any(normalise_text(text) in known for text in row.texts)]
    message = f"{len(places)} further test rows share a sentence with the train file"
    return report_places("overlap-sentence", "warning", places, message, "fine if sentences are used in several pairs on purpose")


def _join_texts(row: LintRow) -> str:
    return " ¦ ".join(sorted(map(normalise_text, row.texts)))


_CHECKS: tuple[Callable[[Sequence[LintRow]], list[LintFinding]], ...] = (
    check_identical,
    check_overlap,
    check_balance,
    check_duplicates,
    check_wordless,
    check_languages,
    check_lengths,
)


@brief_repr
@dataclass(frozen=True)
class LintReport:
    """What was read, and everything found, gravest first."""

    files: tuple[str, ...]
    layouts: tuple[str, ...]
    rows: tuple[int, ...]
    findings: tuple[LintFinding, ...]

    @property
    def worst(self) -> str | None:
        """The gravest severity found, or None."""
        return self.findings[0].severity if self.findings else None

    def to_json(self) -> dict[str, Any]:
        """Return files, layouts, row counts and findings."""
        return dict(to_jsonable(self))


def lint_files(
    path: str | Path, other: str | Path | None = None, *, options: ReadOptions = AS_FOUND, other_options: ReadOptions | None = None
) -> LintReport:
    """Return the findings in a file and, with a second (train first, then test), in both and between them.

    The second file is read like the first unless `other_options` says how.
    """
    # Bad rows are what a linter is for: it lists them all instead of stopping at the first.
    files = ((path, options), (other, other_options or options))
    sets = [read_any(file, replace(how, skip_bad=True)) for file, how in files if file is not None]
    return lint_datasets(*sets)


def lint_datasets(first: AnyDataset, second: AnyDataset | None = None) -> LintReport:
    """Return the findings in data already read."""
    sets = [first] if second is None else [first, second]
    rows = [make_lint_rows(data) for data in sets]
    found = [finding for data, part in zip(sets, rows, strict=True) for finding in (*check_reading(data), *lint_rows(part))]
    if len(rows) == 2:
        found += find_overlap(rows[0], rows[1])
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return LintReport(tuple(data.source for data in sets), tuple(data.detected for data in sets), tuple(map(len, rows)), tuple(found))


def lint_rows(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Return what the checks of one file find."""
    return [finding for check in _CHECKS for finding in check(rows)]
