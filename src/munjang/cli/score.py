"""`munjang score`: a file of pairs and any model → a score, or a label with the score of every label, for each pair.

The file is read twice, first to find rows that cannot be read, then to score; rows are written as they are scored, so that files larger
than memory work. What a score is stands in `models/score_pairs.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from munjang.cli.data_options import ColumnOption, FileArgument, LayoutOption, SkipBadOption, SplitOption, locate_file, read_options
from munjang.cli.options import Chosen, ComputeOption, JsonOption, ModelOption, OutputOption, Takes, chosen_pooling, examples, new_app
from munjang.cli.row_files import check_rows_output, free_names, stream_rows
from munjang.cli.show import emit, note, one_line, print_facts, print_table
from munjang.errors import InputError, UsageError
from munjang.models.score_pairs import BLOCK, score_pairs
from munjang.types import DEFAULT_COMPUTE
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.data.pair_file import PairFile, PairRow
    from munjang.evaluate.calibrate import Calibration
    from munjang.models.pair_scores import PairScores
    from munjang.models.score_pairs import PairModel

SHOWN = 20
"""Pairs that a terminal is shown; -o writes all."""
DIGITS = 6

app = new_app()


@app.command(
    epilog=examples(
        "munjang score pairs.csv -o scored.csv",
        "munjang score nli.tsv --model models/nli/pair_classifier -o labelled.jsonl",
        "munjang score questions.csv --column a=ours --column b=theirs --model my-cross-encoder --json",
    )
)
def score(
    file: FileArgument,
    *,
    model: ModelOption = None,
    options: Annotated[Chosen, Takes(score_pairs)],
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file from `munjang calibrate -o` for this model: add the probability that both mean the same."
        ),
    ] = None,
    output: OutputOption = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    compute: ComputeOption = DEFAULT_COMPUTE,
    as_json: JsonOption = False,
) -> None:
    """Score or label the pairs of a file, with any model.

    A sentence encoder gives the cosine; a cross-encoder its score, or the best label and every label's probability; so does a pair
    classifier, the head that a training kept (keep_head = true) in the folder pair_classifier beside its encoder.
    -o writes .csv, .tsv or .jsonl: all columns of the file, in its order, and the scores.
    """
    from munjang.data.pair_file import open_pairs
    from munjang.models.score_pairs import load_pair_model

    check_rows_output(output)
    with locate_file(file, split=split) as path:
        pairs = open_pairs(path, read_options(layout=layout, columns=column, skip_bad=skip_bad))
        _tell(pairs)
        scorer = load_pair_model(model, compute=compute, pooling=chosen_pooling())
        _point_at_classifier(scorer)
        run = ScoreRun(pairs, scorer, options, None if calibration is None else ScoreCurve.load(scorer, calibration, options))
        if output is not None:
            names = free_names(run.columns, pairs.columns)
            _tell_renamed(names)
            stream_rows(output, [*pairs.columns, *names.values()], ({**row.values, **_rename(found, names)} for row, found in run))
        elif as_json:
            _emit_all(run)
        else:
            _print_first(run)
    run.tell_cut()
    if output is not None and as_json:
        emit(run.to_json() | {"output": str(output)})
    elif not as_json:
        print_facts(run.facts() + ([] if output is None else [("written to", str(output))]))


@dataclass(frozen=True)
class ScoreCurve:
    """A curve from score to the probability that two texts mean the same, and the label whose score it reads."""

    curve: Calibration
    label: str | None

    @classmethod
    def load(cls, model: PairModel, file: Path, options: Chosen) -> ScoreCurve:
        """Read the curve, which must be of this model and of scores as they are by default."""
        from munjang.cli.calibrate import load_calibration_of

        if options["score"] is not None:
            raise UsageError("--calibration reads scores as munjang calibrate does, so it does not go with --score")
        return cls(*load_calibration_of(model, file))

    def add_to(self, said: Iterable[dict[str, Any]], found: PairScores) -> Iterator[dict[str, Any]]:
        """Yield what is said of each pair with its probability."""
        scores = found.scores if self.label is None else found.scores[:, found.labels.index(self.label)]
        for each, probability in zip(said, self.curve.probability(scores).tolist(), strict=True):
            yield {**each, "probability": round(probability, DIGITS)}


@dataclass
class ScoreRun:
    """The pairs of a file with their scores, one after the other, and what became known of them on the way."""

    pairs: PairFile
    model: PairModel
    options: Chosen
    score_curve: ScoreCurve | None = None
    labels: tuple[str, ...] = ()
    seen: int = 0
    cut: int = 0
    total: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        from munjang.models.score_pairs import score_block

        self.labels = score_block([], self.model, **self.options).labels

    @property
    def columns(self) -> list[str]:
        """The names of what is said of each pair."""
        scores = ["label", "score", *(f"score_{label}" for label in self.labels)] if self.labels else ["score"]
        return [*scores, *([] if self.score_curve is None else ["probability"])]

    def __iter__(self) -> Iterator[tuple[PairRow, dict[str, Any]]]:
        from munjang.models.progress import progress_bar
        from munjang.models.score_pairs import score_block

        waiting = iter(self.pairs)
        with progress_bar("score", len(self.pairs), shown=True) as advance:
            while rows := list(islice(waiting, BLOCK)):
                found = score_block([(row.a, row.b) for row in rows], self.model, **self.options)
                _refuse_not_finite(rows, found)
                self._count(found)
                said = self._say(found) if self.score_curve is None else self.score_curve.add_to(self._say(found), found)
                yield from zip(rows, said, strict=True)
                advance(len(rows))

    def _count(self, found: PairScores) -> None:
        self.seen += len(found.scores)
        self.cut += len(found.cut)
        if self.labels:
            self.counts.update(found.predicted)
        else:
            self.total += float(found.scores.sum(dtype="float64"))

    def _say(self, found: PairScores) -> Iterator[dict[str, Any]]:
        names = self.columns[: len(self.labels) + 2]
        if not self.labels:
            return ({"score": round(value, DIGITS)} for value in found.scores.tolist())
        rows = zip(found.predicted, found.scores.tolist(), strict=True)
        return (dict(zip(names, [label, *(round(value, DIGITS) for value in (max(row), *row))], strict=True)) for label, row in rows)

    def tell_cut(self) -> None:
        """Say on standard error how many pairs were not read to their end."""
        from munjang.models.score_pairs import warn_of_cut_pairs

        if self.cut:
            warn_of_cut_pairs(self.cut, self.seen, self.model.max_length, in_python="")

    def to_json(self) -> dict[str, Any]:
        """Return what is known of all pairs together."""
        many = {"labels": {label: self.counts[label] for label in self.labels}} if self.labels else {"mean_score": self.total / self.seen}
        return {"pairs": self.seen, "skipped": self.pairs.skipped, "truncated": self.cut, "model": self.model.name, **many}

    def facts(self) -> list[tuple[str, str]]:
        """Return the same for people."""
        facts = [("model", self.model.name), ("pairs", f"{self.seen:,}")]
        if self.labels:
            return facts + [(label, f"{self.counts[label]:,} ({self.counts[label] / self.seen:.1%})") for label in self.labels]
        return [*facts, ("mean score", f"{self.total / self.seen:.4f}")]


def _refuse_not_finite(rows: Sequence[PairRow], found: PairScores) -> None:
    import numpy as np

    bad = np.flatnonzero(~np.isfinite(found.scores.reshape(len(rows), -1)).all(axis=1))
    if bad.size:
        raise InputError(f"{rows[bad[0]].where}: the model gives a score that is not a finite number\n  check it with munjang models check")


def _rename(found: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names[name]: value for name, value in found.items()}


def _emit_all(run: ScoreRun) -> None:
    """Print one JSON list, row by row."""
    before = "["
    for number, (row, found) in enumerate(run, start=1):
        print(before, json.dumps({"row": number, "a": row.a, "b": row.b, **found}, ensure_ascii=False, allow_nan=False), sep="", end="")
        before = ",\n"
    print("]")


def _print_first(run: ScoreRun) -> None:
    """Print the first pairs as a table; all are scored, for the facts below it."""
    head = ["label", "score"] if run.labels else ["score"]
    shown: list[list[str]] = []
    for row, found in run:
        if len(shown) < SHOWN:
            shown.append([f"{found[name]:.4f}" if name == "score" else str(found[name]) for name in head] + [row.a, row.b])
    print_table([*head, "a", "b"], shown, right=["score"])
    if run.seen > SHOWN:
        note(f"the first {SHOWN} of {count(run.seen, 'pair')} are shown (-o writes all)")


def _tell(pairs: PairFile) -> None:
    note(one_line(f"{pairs.source}: {count(len(pairs), 'pair')}; {pairs.detected}"))
    if pairs.skipped:
        note(f"{count(pairs.skipped, 'row')} left out")
    for message in pairs.first_skipped:
        note(f"  {one_line(message)}")


def _tell_renamed(names: dict[str, str]) -> None:
    renamed = [f"{name} as {chosen}" for name, chosen in names.items() if name != chosen]
    if renamed:
        note(one_line(f"the file has columns of these names already; written are {', '.join(renamed)}"))


def _point_at_classifier(model: PairModel) -> None:
    """Say that a sentence encoder, whose cosine is computed, has a kept classifier too."""
    from munjang.models.pair_classifier import find_pair_classifier
    from munjang.models.sentence_encoder import SentenceEncoder

    kept = find_pair_classifier(model.folder.path) if isinstance(model, SentenceEncoder) else None
    if kept is not None:
        note(f"these are cosines; the folder keeps a classifier too: --model {kept}")
