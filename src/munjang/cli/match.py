"""`munjang match`: two files or libraries → for each text of the first its best counterpart in the second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from munjang.analyze.match import Matched
from munjang.analyze.match import match as match_vectors
from munjang.cli.collection import encoder_for, read_collection, vectors_of
from munjang.cli.data_options import locate_file, read_options
from munjang.cli.options import (
    Chosen,
    Columns,
    EncodingOption,
    FormatOption,
    JsonOption,
    ModelChoice,
    NoQuotingOption,
    OutputOption,
    Takes,
    examples,
    new_app,
)
from munjang.cli.row_files import TextRow, check_rows_output, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.errors import UsageError
from munjang.types import DEFAULT_ENCODING, Encoder
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        "munjang match ours.csv theirs.csv --one-to-one --threshold 0.7",
        "munjang match our-products.csv their-products.csv --one-to-one --numbers --threshold 0.75",
        "munjang match ours.csv theirs.db --calibrate labelled.csv",
        "munjang match korean.txt english.txt --margin --one-to-one --threshold 1.05 -o bitext.tsv",
    )
)
def match(
    left: Annotated[str, typer.Argument(metavar="FILE", help='The texts to match: a file, a library, or "-" for standard input.')],
    right: Annotated[str, typer.Argument(metavar="FILE", help="The texts to choose counterparts from: a file or a library.")],
    *,
    options: Annotated[Chosen, Takes(match_vectors)],
    calibrate: Annotated[
        str | None, typer.Option(metavar="LABELLED", help="Use the threshold with the best F1 on these labelled pairs (csv, tsv, jsonl).")
    ] = None,
    same_at: Annotated[
        float | None, typer.Option(help="For --calibrate with scored pairs: the score from which a pair counts as the same.")
    ] = None,
    output: OutputOption = None,
    text_column: Annotated[
        list[str] | None, typer.Option("--text-column", help="The column with the text; give it twice if it differs between the files.")
    ] = None,
    format: FormatOption = None,
    encoding: EncodingOption = DEFAULT_ENCODING,
    no_quoting: NoQuotingOption = False,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Match each text of one file to its counterpart in another.

    Either may be a library, whose vectors are reused.
    -o writes .csv, .tsv or .jsonl.
    """
    check_rows_output(output)
    if calibrate is not None and (options["threshold"] is not None or options["margin"]):
        raise UsageError("--calibrate finds a threshold for cosines, so it goes with neither --threshold nor --margin")
    if left == right == "-":
        raise UsageError('"-" can stand for one of the two files, not for both')
    left_column, right_column = _columns(text_column)
    sides = [
        read_collection(name, Columns(column, None, format, encoding, no_quoting))
        for name, column in ((left, left_column), (right, right_column))
    ]
    encoder = encoder_for(sides, chosen_model.model, compute=chosen_model.compute, always=calibrate is not None)
    if calibrate is not None and encoder is not None:
        options["threshold"] = _find_threshold(calibrate, encoder, same_at)
    found = match_vectors(*vectors_of(sides, encoder), **options, texts=(sides[0].texts, sides[1].texts))
    if not found.exact:
        note("too many texts for the optimal assignment; pairs were taken greedily, best first")
    _show(found, sides[0].rows, sides[1].rows, output, options["threshold"], as_json=as_json)


def _find_threshold(labelled: str, encoder: Encoder, same_at: float | None) -> float:
    """Return the threshold that tells the labelled pairs apart best, and say how well it does."""
    from munjang.cli.calibrate import same_labels, score_rows
    from munjang.data.read import read_any
    from munjang.evaluate.calibrate import calibrate

    with locate_file(labelled, split="test") as path:
        data = read_any(path, read_options())
    report = calibrate(score_rows(encoder, data), same_labels(data, same_at))
    threshold = report.calibration.threshold
    note(f"threshold {threshold:.3f}, from {count(report.n, 'labelled pair')}; F1 {report.f1:.3f} on held-out folds")
    return threshold


def _columns(given: Sequence[str] | None) -> tuple[str | None, str | None]:
    if not given:
        return None, None
    if len(given) > 2:
        raise UsageError(f"--text-column: found {count(len(given), 'name')}, expected one or two")
    return given[0], given[-1]


def _show(
    found: Matched, ours: Sequence[TextRow], theirs: Sequence[TextRow], output: Path | None, threshold: float | None, *, as_json: bool
) -> None:
    pairs = [(round(pair.score, 6), ours[pair.left], theirs[pair.right]) for pair in found.matches]
    if output is not None:
        write_rows(output, [_flat(*pair) for pair in pairs])
    if as_json:
        emit(
            {
                "matches": [{"score": score, "left": a.facts(), "right": b.facts()} for score, a, b in pairs],
                "left_alone": [ours[row].facts() for row in found.left_alone],
                "right_alone": [theirs[row].facts() for row in found.right_alone],
                "exact": found.exact,
            }
        )
        return
    if output is None:
        table = ([f"{score:.3f}", a.name(), a.text, b.name(), b.text] for score, a, b in pairs)
        print_table(
            ["score", "left", "", "right", " "],
            table,
            right=["score"],
            empty="no matches" + ("" if threshold is None else f" above {threshold:.4g}"),
        )
    facts = [("matched", f"{len(pairs):,}"), ("alone on the left", f"{len(found.left_alone):,}")]
    facts += [("alone on the right", f"{len(found.right_alone):,}")]
    print_facts(facts + ([] if output is None else [("written to", str(output))]))


def _flat(score: float, a: TextRow, b: TextRow) -> dict[str, Any]:
    return {"score": score, "left": a.name(), "right": b.name(), "text_left": a.text, "text_right": b.text}
