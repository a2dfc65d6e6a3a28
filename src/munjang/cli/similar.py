"""`munjang similar`: two sentences → a score; two files → the matrix of all scores, also as a picture."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from munjang.cli.options import (
    ComputeOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    LanguageOption,
    ModelOption,
    NoQuotingOption,
    OutputOption,
    TextColumnOption,
    examples,
    new_app,
    report_language,
)
from munjang.cli.row_files import no_text
from munjang.cli.show import emit, note, print_facts
from munjang.errors import InputError, UsageError
from munjang.models.expected_similarity import SCALE, describe_expected, expect_similarity
from munjang.report.words import Word, say

if TYPE_CHECKING:
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.types import Floats
from munjang.atomic import atomic_file, atomic_write
from munjang.cli.load_model import load_model
from munjang.cli.show import print_heat
from munjang.text.readers import read_texts
from munjang.types import DEFAULT_COMPUTE, DEFAULT_ENCODING, Format, Metric
from munjang.wording import Language

SHOWN_CELLS = 2_500
"""Beyond this a matrix is of no use in a terminal."""

MAX_CELLS = 100_000_000
"""400 MB of float32."""

PICTURES = (".html", ".svg", ".csv", ".npy")

app = new_app()


@app.command(
    epilog=examples(
        'munjang similar "비가 온다" "It is raining"',
        "munjang similar --matrix questions.txt answers.csv -o matrix.html",
    )
)
def similar(
    a: Annotated[str, typer.Argument(metavar="A", help='A sentence, or with --matrix a file; "-" is standard input.')],
    b: Annotated[str | None, typer.Argument(metavar="B", help="A second sentence or file; a single file is compared with itself.")] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="A and B are files: compare every line of A with every line of B.")] = False,
    metric: Annotated[
        Literal["cosine", "dot", "euclidean", "manhattan"] | None,
        typer.Option(help="The similarity; distances are negative, so that higher is closer. Default: the model's own."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file from `munjang calibrate -o` for this model: print the probability that both mean the same."
        ),
    ] = None,
    output: OutputOption = None,
    language: LanguageOption = None,
    model: ModelOption = None,
    text_column: TextColumnOption = None,
    format: FormatOption = None,
    encoding: EncodingOption = DEFAULT_ENCODING,
    no_quoting: NoQuotingOption = False,
    compute: ComputeOption = DEFAULT_COMPUTE,
    as_json: JsonOption = False,
) -> None:
    """Score how similar two sentences, or two files of them, are.

    The description next to the score is based on human judgements of pairs that this model scored; other models show the score alone.
    With --matrix, -o writes .html or .svg (a picture), .csv or .npy.
    """
    if calibration is not None and (matrix or metric not in (None, "cosine")):
        raise UsageError("--calibration says what the cosine of two sentences means, so it goes with neither --matrix nor another --metric")
    if matrix:
        _check_output(output)
        rows = _texts(a, text_column, format, encoding, no_quoting=no_quoting)
        columns = rows if b is None else _texts(b, text_column, format, encoding, no_quoting=no_quoting)
        if len(rows) * len(columns) > MAX_CELLS:
            raise UsageError(f"{len(rows):,} x {len(columns):,} scores are more than {MAX_CELLS:,}\n  give smaller files")
        encoder, spoken = load_model(model, compute=compute), report_language(language)
        _matrix(encoder, rows, columns, metric=metric, output=output, language=spoken, as_json=as_json)
    elif b is None:
        raise UsageError("one sentence given, expected two\n  two files are compared with --matrix FILE FILE")
    elif output is not None:
        raise UsageError("-o goes with --matrix; the score of two sentences is printed")
    else:
        _pair(load_model(model, compute=compute), a, b, metric=metric, calibration=calibration, as_json=as_json)


def sentence(argument: str) -> str:
    """Return a sentence given on the command line, or all of standard input for "-"."""
    if argument != "-":
        return argument
    found = sys.stdin.read().strip()
    if not found:
        raise InputError("standard input holds no text, expected a sentence")
    return found


def _pair(encoder: SentenceEncoder, a: str, b: str, *, metric: Metric | None, calibration: Path | None, as_json: bool) -> None:
    from munjang.cli.calibrate import load_calibration_of
    from munjang.vectors.similarity import similarity

    if a == b == "-":
        raise UsageError('"-" can stand for one of the two sentences, not for both')
    curve = None if calibration is None else load_calibration_of(encoder, calibration)[0]
    a, b = sentence(a), sentence(b)
    u, v = encoder.encode([a, b])
    used = metric or encoder.folder.similarity
    if curve is not None and used != "cosine":
        raise UsageError(f"{encoder.name} compares by {used}, and --calibration is about cosines\n  add --metric cosine")
    score = round(float(similarity(u, v, metric=used)[0, 0]), 6)
    if curve is not None:
        probability = round(float(curve.probability(score)[0]), 6)
        meaning: dict[str, Any] = {"probability": probability}
        words = f"the same with probability {probability:.2f}"
    else:
        expected = expect_similarity(encoder, a, b, score) if used == "cosine" else None
        meaning = {} if expected is None else {"expected": round(expected, 3), "scale": list(SCALE), "words": describe_expected(expected)}
        words = str(meaning.get("words", "")) if used == "cosine" else used
    if as_json:
        emit({"score": score, **meaning})
    else:
        print(f"{score:.{2 if used == 'cosine' else 4}f}" + (f" ({words})" if words else ""))


def _matrix(
    encoder: SentenceEncoder,
    rows: list[str],
    columns: list[str],
    *,
    metric: Metric | None,
    output: Path | None,
    language: Language,
    as_json: bool,
) -> None:
    from munjang.vectors.similarity import similarity

    u_ND = encoder.encode(rows, progress=True)
    v_MD = u_ND if columns is rows else encoder.encode(columns, progress=True)
    scores_NM = similarity(u_ND, v_MD, metric=metric or encoder.folder.similarity)
    if output is not None:
        _write(scores_NM, rows, columns, output, model=encoder.name, language=language)
        facts = {"rows": len(rows), "columns": len(columns), "model": encoder.name, "output": str(output)}
        emit(facts) if as_json else print_facts([(name, str(value)) for name, value in facts.items()])
    elif as_json:
        emit({"rows": rows, "columns": columns, "scores": [[round(float(score), 6) for score in row] for row in scores_NM]})
    else:
        _print(scores_NM, rows, columns)


def _print(scores_NM: Floats, rows: list[str], columns: list[str]) -> None:
    if scores_NM.size > SHOWN_CELLS:
        side = int(SHOWN_CELLS**0.5)
        note(f"{len(rows):,} x {len(columns):,} scores; the first {side} rows and columns are shown (-o writes all)")
        scores_NM, rows, columns = scores_NM[:side, :side], rows[:side], columns[:side]
    numbers = [str(number) for number in range(1, len(columns) + 1)]
    if rows == columns:
        rows = [f"{number} {text}" for number, text in zip(numbers, rows, strict=True)]
    else:
        print_facts(zip(numbers, columns, strict=True))
        print()
    print_heat(scores_NM, rows, numbers)


def _write(scores_NM: Floats, rows: list[str], columns: list[str], output: Path, *, model: str, language: Language) -> None:
    from munjang.report.heatmap import heatmap_svg
    from munjang.report.page import page, section, wide

    title = say(Word.SIMILARITY_OF, language, rows=len(rows), columns=len(columns))
    suffix = output.suffix.lower()
    if suffix == ".npy":
        import numpy as np

        with atomic_file(output) as handle:
            np.save(handle, scores_NM, allow_pickle=False)
    elif suffix == ".csv":
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["", *columns])
        table.writerows([name, *(f"{score:.6f}" for score in row)] for name, row in zip(rows, scores_NM, strict=True))
        atomic_write(output, text.getvalue())
    else:
        svg = heatmap_svg(scores_NM, rows, columns, title=title)
        lead, footer = say(Word.MODEL, language, model=model), say(Word.SIMILAR_FOOTER, language)
        whole = page(title, [section(say(Word.SCORES_OF_TEXTS, language), wide(svg))], lead=lead, footer=footer, language=language)
        atomic_write(output, svg if suffix == ".svg" else whole)


def _check_output(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in PICTURES:
        raise UsageError(f"{output}: expected a name that ends in {', '.join(PICTURES)}")


def _texts(path: str, text_column: str | None, format: Format | None, encoding: str, *, no_quoting: bool) -> list[str]:
    quoting = False if no_quoting else None
    texts = [record.text for record in read_texts(path, text_column=text_column, format=format, encoding=encoding, quoting=quoting)]
    if not texts:
        raise no_text([path])
    return texts
