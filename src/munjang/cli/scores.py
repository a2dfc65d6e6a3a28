"""Results of evaluation → JSON for machines and files, tables × 100 with 95 % intervals for people.

Texts of data sets are shown through `errors.shown`, names of genres and classes on one line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.atomic import atomic_write
from munjang.cli.options import JsonOption, OutputOption
from munjang.cli.show import emit, print_table
from munjang.errors import UsageError, quote

if TYPE_CHECKING:
    from munjang.data.rows import Scale
    from munjang.evaluate.bootstrap import Interval
    from munjang.evaluate.nli import NliResult
    from munjang.evaluate.pairs import PairsResult
    from munjang.evaluate.rerank import RerankEvaluation
    from munjang.evaluate.retrieval import RetrievalResult
    from munjang.evaluate.sts import StsResult

NOTHING = "–"
CI = "95 %"


def check_output(output: Path | None) -> None:
    """Refuse a place that cannot be written to before the work is done."""
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise UsageError(f"{output}: expected the name of a file in a folder that exists")


@dataclass(frozen=True)
class Delivery:
    """Where a report goes: to a file, and as JSON or a table to standard output."""

    output: OutputOption = None
    as_json: JsonOption = False

    def check(self) -> None:
        """Refuse a place that cannot be written to before the work is done."""
        check_output(self.output)

    def give(self, body: Mapping[str, Any], show: Callable[[], None]) -> None:
        """Write the report if a file is named; print it as JSON, or let `show` print it for people."""
        deliver(body, output=self.output, as_json=self.as_json)
        if not self.as_json:
            show()


def deliver(body: Mapping[str, Any], *, output: Path | None, as_json: bool) -> None:
    """Write the report to a file if one is named, and print it if JSON is wanted."""
    if output is not None:
        # A lone surrogate in a text becomes a JSON escape.
        atomic_write(output, json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n")
    if as_json:
        emit(body)


def format_percent(value: float | None) -> str:
    """Say a share times 100, as tables in papers do.

    >>> format_percent(0.8123), format_percent(float("nan"))
    ('81.23', '–')
    """
    return NOTHING if value is None or not math.isfinite(value) else f"{100 * value:.2f}"


def interval_text(interval: Interval | None) -> str:
    """Say a 95 % interval times 100."""
    if interval is None or not math.isfinite(interval.low):
        return NOTHING
    return f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"


def print_scores(scores: Mapping[str, float], ci95: Mapping[str, Interval]) -> None:
    """Print one number a row, with its interval where there is one."""
    rows = [(name, format_percent(value), interval_text(ci95[name]) if name in ci95 else "") for name, value in scores.items()]
    if ci95:
        print_table(("score x 100", "", CI), rows, right=("",))
    else:
        print_table(("score x 100", ""), [row[:2] for row in rows], right=("",))


def print_sts(found: StsResult, scale: Scale) -> None:
    """Print the eight numbers, the genres and the worst pairs."""
    metrics = [name.removeprefix("pearson_") for name in found.scores if name.startswith("pearson_")]
    rows = [
        (metric, *(cell for how in ("pearson", "spearman") for cell in _with_interval(f"{how}_{metric}", found.scores, found.ci95)))
        for metric in metrics
    ]
    print_table(("x 100", "Pearson", CI, "Spearman", CI), rows, right=("Pearson", "Spearman"))
    if found.genres:
        genres = [
            (genre.genre, f"{genre.n:,}", format_percent(genre.pearson_cosine), format_percent(genre.spearman_cosine))
            for genre in found.genres
        ]
        print_table(("genre (cosine)", "pairs", "Pearson", "Spearman"), genres, right=("pairs", "Pearson", "Spearman"))
    if found.worst:
        low, high = scale
        worst = [
            (f"{low + pair.gold * (high - low):.2f}", f"{pair.cosine:.2f}", _verdict(pair.gap), pair.where, quote(pair.a), quote(pair.b))
            for pair in found.worst
        ]
        print_table(("gold", "cosine", "the model finds", "where", "a", "b"), worst, right=("gold", "cosine"))
    if found.binary is not None:
        print(f"same or different: F1 {format_percent(found.binary.f1)} at cosine {found.binary.threshold:.3f} (chosen on these rows)")


def print_pairs(found: PairsResult) -> None:
    """Print a row of numbers for each similarity, or for the score, and the intervals of the first."""
    shares = ("accuracy", "f1", "precision", "recall", "ap", "mcc")
    prefixes = [name.removesuffix("ap") for name in found.scores if name == "ap" or name.endswith("_ap")]
    rows = [
        (
            prefix.removesuffix("_") or "score",
            *(format_percent(found.scores[f"{prefix}{share}"]) for share in shares),
            f"{found.scores[f'{prefix}f1_threshold']:.3f}",
        )
        for prefix in prefixes
    ]
    names = ("x 100", "accuracy", "F1", "precision", "recall", "AP", "MCC", "F1 threshold")
    print_table(names, rows, right=names[1:])
    for name, interval in found.ci95.items():
        print(f"{name}: 95 % from {interval_text(interval)}")


def print_nli(found: NliResult) -> None:
    """Print accuracy, F1 and how labels were confused."""
    print_scores({"accuracy": found.accuracy, "macro_f1": found.macro_f1}, found.ci95)
    names = list(found.confusion)
    rows = [(gold, *(f"{found.confusion[gold][name]:,}" for name in names)) for gold in names]
    print_table(("gold \\ predicted", *names), rows, right=names)


def print_retrieval(found: RetrievalResult) -> None:
    """Print a row of measures for each cut, and the intervals."""
    measures = list(dict.fromkeys(name.split("@")[0] for name in found.scores))
    cuts = list(dict.fromkeys(name.split("@")[1] for name in found.scores))
    rows = [(cut, *(format_percent(found.scores[f"{measure}@{cut}"]) for measure in measures)) for cut in cuts]
    if found.ci95:
        rows = [(*row, interval_text(found.ci95[f"ndcg@{row[0]}"])) for row in rows]
    names = ("@k, x 100", *measures)
    print_table((*names, "95 % of ndcg") if found.ci95 else names, rows, right=names)


def print_rerank(found: RerankEvaluation) -> None:
    """Print every number before and after, and whether the gain is real."""
    rows = [(name, format_percent(found.before.scores[name]), format_percent(value)) for name, value in found.after.scores.items()]
    print_table(("x 100", "before", "after"), rows, right=("before", "after"))
    gain = found.gain
    print(f"{found.main}: {100 * gain.difference:+.2f} (95 % from {interval_text(gain.ci95)}, p = {p_text(gain.p)})")


def p_text(p: float) -> str:
    """Say a p-value.

    >>> p_text(0.0002), p_text(0.25)
    ('0.0002', '0.25')
    """
    return NOTHING if not math.isfinite(p) else f"{p:.2g}"


def _with_interval(name: str, scores: Mapping[str, float], ci95: Mapping[str, Interval]) -> Sequence[str]:
    return format_percent(scores[name]), interval_text(ci95.get(name))


def _verdict(gap: float) -> str:
    return "too alike" if gap > 0 else "too different"
