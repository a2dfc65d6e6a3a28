"""The checks of one data file. Each takes rows and returns the findings of one kind, none if all is well."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence

from munjang.errors import shown
from munjang.evaluate.correlation import pearson
from munjang.evaluate.datasets.layouts import has_hangul
from munjang.evaluate.datasets.read import AnyDataset
from munjang.evaluate.findings import Finding, LintRow, finding, normalised
from munjang.wording import count, plural

_LONG = 2_000  # characters; past what most sentence models read
_ENOUGH = 30  # rows below which a correlation says nothing


def reading(data: AnyDataset) -> list[Finding]:
    """Report rows that could not be read, and what the reader wondered about."""
    found = []
    unlabelled = [message for message in data.skipped if message.endswith("without a label")]
    bad = [message for message in data.skipped if not message.endswith("without a label")]
    if bad:
        out_of_range = sum(": the score is " in message for message in bad) > len(bad) / 2
        advice = (
            "state the scale of the file (--scale 0 5), or mend the lines" if out_of_range else "mend the lines, or skip them on purpose"
        )
        found.append(finding("bad-rows", "error", bad, f"{data.source}: {count(len(bad), 'row')} cannot be read", advice))
    if unlabelled:
        message = f"{data.source}: {count(len(unlabelled), 'row')} without a label"
        found.append(finding("unlabelled", "info", unlabelled, message, "nothing: they are left out"))
    for note in data.notes:
        grave = "scale" in note
        found.append(
            Finding("scale" if grave else "reading", "warning" if grave else "info", 1, f"{data.source}: {note}", "check it by eye")
        )
    return found


def identical_but_different(rows: Sequence[LintRow]) -> list[Finding]:
    """Report pairs of one and the same sentence that are labelled as unlike: the mark of inverted labels."""
    same = [row for row in rows if len(row.texts) == 2 and row.alike is not None and normalised(row.texts[0]) == normalised(row.texts[1])]
    wrong = [row.where for row in same if row.alike is not None and row.alike < 0.5]
    if not wrong:
        return []
    inverted = len(wrong) > len(same) / 2
    message = f"{len(wrong)} of {count(len(same), 'pair')} of identical sentences {plural(len(wrong), 'is')} labelled as different"
    advice = "the labels look inverted: state what they mean when reading" if inverted else "check these rows"
    return [
        finding("inverted-labels" if inverted else "identical-but-different", "error" if inverted else "warning", wrong, message, advice)
    ]


def overlap_against_label(rows: Sequence[LintRow]) -> list[Finding]:
    """Report labels that fall while shared words rise."""
    pairs = [row for row in rows if len(row.texts) == 2 and row.alike is not None]
    if len(pairs) < _ENOUGH:
        return []
    shared = [_shared_words(*row.texts) for row in pairs]
    correlation = pearson(shared, [row.alike or 0.0 for row in pairs])
    if not correlation < -0.1:
        return []
    message = f"labels fall as pairs share more words (correlation {correlation:.2f})"
    places = [row.where for row, words in zip(pairs, shared, strict=True) if words > 0.9 and (row.alike or 0.0) < 0.5]
    return [Finding("inverted-labels", "warning", len(pairs), message, "look whether high means different in this file", tuple(places[:5]))]


def label_balance(rows: Sequence[LintRow]) -> list[Finding]:
    """Report labels of one kind only, and labels that hardly occur."""
    labels = Counter(row.label for row in rows if row.label)
    if not labels:
        return []
    if len(labels) == 1:
        only = next(iter(labels))
        return [
            Finding(
                "one-class",
                "error",
                len(rows),
                f"every row has the label {shown(only)}",
                "nothing can be learnt or measured; add other rows",
            )
        ]
    if len(labels) > 20:  # scores or groups rather than classes
        return []
    rare = {label: size for label, size in labels.items() if size < 0.02 * len(rows)}
    if not rare:
        return []
    places = [row.where for row in rows if row.label in rare]
    listed = ", ".join(f"{shown(label, 30)} {count(size, 'time')}" for label, size in sorted(rare.items())[:5])
    return [finding("rare-label", "info", places, f"labels that hardly occur: {listed}", "check for typing errors in labels")]


def duplicates(rows: Sequence[LintRow]) -> list[Finding]:
    """Report rows that repeat an earlier one (pairs in either order), apart where their labels agree and where they contradict."""
    groups: defaultdict[tuple[str, ...], list[LintRow]] = defaultdict(list)
    for row in rows:
        texts = tuple(map(normalised, row.texts))
        groups[tuple(sorted(texts)) if len(texts) == 2 else texts].append(row)
    repeated = [group for group in groups.values() if len(group) > 1]
    agreeing = [group for group in repeated if not _contradict(group)]
    against = [group for group in repeated if _contradict(group)]
    found = []
    if against:
        places = [" and ".join(row.where for row in group[:3]) for group in against]
        message = f"labels contradict each other for {count(len(against), 'text or pair')}"
        found.append(finding("contradictory-duplicates", "error", places, message, "decide each by hand, or leave them out"))
    if agreeing:
        places = [row.where for group in agreeing for row in group[1:]]
        message = f"{count(len(places), 'repeat')} of an earlier row"
        found.append(
            finding("duplicates", "warning", places, message, "leave repeats out; in-batch negatives would push equal texts apart")
        )
    return found


def wordless_texts(rows: Sequence[LintRow]) -> list[Finding]:
    """Report texts without a letter or digit."""
    places = [row.where for row in rows if any(not any(ch.isalnum() for ch in text) for text in row.texts)]
    if not places:
        return []
    return [
        finding(
            "wordless",
            "warning",
            places,
            f"{count(len(places), 'row')} with a text without a letter or digit",
            "look at them; leave them out",
        )
    ]


def language_mix(rows: Sequence[LintRow]) -> list[Finding]:
    """Report rows in another script than most: Hangul where it is rare, or none where it is usual."""
    if not rows:
        return []
    hangul = [any(map(has_hangul, row.texts)) for row in rows]
    share = sum(hangul) / len(rows)
    few = share < 0.5
    places = [row.where for row, korean in zip(rows, hangul, strict=True) if korean == few]
    if not 0 < len(places) <= 0.4 * len(rows):
        return []
    message = (
        f"{len(places)} of {count(len(rows), 'row')} {'with Hangul where most have none' if few else 'without Hangul where most have it'}"
    )
    return [finding("language-mix", "info", places, message, "fine if the set is meant to be mixed")]


def long_texts(rows: Sequence[LintRow]) -> list[Finding]:
    """Report texts far longer than the rest, which a sentence model would cut or window."""
    if not rows:
        return []
    lengths = [max(map(len, row.texts)) for row in rows]
    usual = statistics.median(lengths)
    places = [row.where for row, length in zip(rows, lengths, strict=True) if length > max(_LONG, 5 * usual)]
    if not places:
        return []
    limit = int(max(_LONG, 5 * usual))
    message = f"{count(len(places), 'text')} {plural(len(places), 'is')} longer than {limit:,} characters (median {usual:.0f})"
    return [finding("long-texts", "info", places, message, "expect windows or truncation; split them into paragraphs")]


def _contradict(group: Sequence[LintRow]) -> bool:
    known = [row.alike for row in group if row.alike is not None]
    if len(known) == len(group):
        return max(known) - min(known) > 0.25
    return len({row.label for row in group}) > 1


def _shared_words(a: str, b: str) -> float:
    left, right = set(normalised(a).split()), set(normalised(b).split())
    return len(left & right) / max(1, len(left | right))
