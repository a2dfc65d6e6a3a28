"""`munjang morphs`: a sentence, a text or a file of texts → morphemes with tags, lemmas and places, or sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from munjang.cli.options import Chosen, Columns, JsonOption, OutputOption, Takes, examples, new_app
from munjang.cli.row_files import TextRow, check_rows_output, read_text_rows, write_rows
from munjang.cli.show import emit, print_facts, print_table
from munjang.cli.similar import sentence
from munjang.errors import UsageError
from munjang.text.morphology import analyse

if TYPE_CHECKING:
    from munjang.text.morphology import Morphology

app = new_app()


@app.command(
    epilog=examples(
        'munjang morphs "서울에 눈이 내렸다"',
        'munjang morphs "서울에 눈이 내렸다" --nouns --json',
        "munjang morphs --sentences - < letter.txt",
        "munjang morphs --file news.csv -o morphs.csv",
    )
)
def morphs(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help='A sentence or a text; "-" is standard input.')] = None,
    *,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of texts instead: txt, csv, tsv, jsonl, json or parquet, also gzipped.")
    ] = None,
    options: Annotated[Chosen, Takes(analyse)],
    sentences: Annotated[bool, typer.Option("--sentences", help="Print the sentences instead of the morphemes.")] = False,
    output: OutputOption = None,
    columns: Columns,
    as_json: JsonOption = False,
) -> None:
    """Split Korean into sentences and morphemes, with tags and lemmas.

    Kiwi does it (extra korean), and its answer is not changed. -o writes one row a morpheme, or a sentence, as .csv, .tsv or .jsonl.
    """
    check_rows_output(output)
    if (text is None) == (file is None):
        found = "neither a text nor --file is given" if text is None else "a text and --file are given"
        raise UsageError(f'{found}, expected one of them\n  munjang morphs "서울에 눈이 내렸다", or munjang morphs --file news.csv')
    rows = read_text_rows(file, columns) if file is not None else [TextRow(1, None, sentence(text or ""), {})]
    answers = list(zip(rows, analyse([row.text for row in rows], **options), strict=True))
    if output is not None:
        lines = list(_lines(answers, sentences))
        write_rows(output, lines)
        if not as_json:
            print_facts(
                [("texts", f"{len(rows):,}"), ("sentences" if sentences else "morphemes", f"{len(lines):,}"), ("output", str(output))]
            )
    if as_json:
        emit(_facts(answers[0][1]) if file is None else [{**row.facts(), **_facts(answer)} for row, answer in answers])
    elif output is None:
        _show(answers, sentences, numbered=file is not None)


def _facts(answer: Morphology) -> dict[str, Any]:
    return {"text": answer.text, "sentences": [asdict(each) for each in answer.sentences]}


def _lines(answers: Iterable[tuple[TextRow, Morphology]], sentences: bool) -> Iterator[dict[str, Any]]:
    """Yield one row a sentence or a morpheme; sentences count from 1 within their text."""
    for row, answer in answers:
        for number, each in enumerate(answer.sentences, start=1):
            place: dict[str, Any] = {"row": row.name(), "sentence": number}
            if sentences:
                yield {**place, "text": each.text, "start": each.start, "end": each.end}
            else:
                yield from ({**place, **asdict(morph)} for morph in each.morphs)


def _show(answers: Sequence[tuple[TextRow, Morphology]], sentences: bool, *, numbered: bool) -> None:
    names = ["text"] if sentences else ["form", "tag", "lemma"]
    several = numbered or any(len(answer.sentences) > 1 for _, answer in answers)
    shown = [*(["row"] if numbered else []), *(["sentence"] if several else []), *names, "place"]
    lines = ({**line, "place": f"{line['start']}–{line['end']}"} for line in _lines(answers, sentences))
    nothing = "no sentences" if sentences else "no morphemes"
    print_table(shown, ([str(line[name]) for name in shown] for line in lines), right=("sentence", "place"), empty=nothing)
