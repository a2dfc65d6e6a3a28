"""`munjang rerank`: a query and a file of texts → the texts, best answers first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.options import (
    Chosen,
    Columns,
    ComputeOption,
    CrossModelOption,
    JsonOption,
    OutputOption,
    Takes,
    TextsArgument,
    examples,
    new_app,
)
from munjang.cli.row_files import check_rows_output, write_rows
from munjang.cli.show import emit, note, print_table
from munjang.models.ranking import Ranker
from munjang.types import DEFAULT_COMPUTE
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        'munjang rerank "winter weather" candidates.txt -k 5',
        'munjang rerank "겨울 날씨" news.csv --text-column title --model my-cross-encoder --json',
        'munjang rerank "winter weather" candidates.txt --model my-encoder --late',
    )
)
def rerank(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    file: TextsArgument,
    *,
    model: CrossModelOption = None,
    late: Annotated[
        bool, typer.Option("--late", help="--model is a sentence encoder, whose tokens are compared. Default without --model.")
    ] = False,
    options: Annotated[Chosen, Takes(Ranker.rank)],
    columns: Columns,
    compute: ComputeOption = DEFAULT_COMPUTE,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank texts by how well they answer a query.

    A sentence encoder reads each text once, and every token of the query is compared with every token of the text (MaxSim).
    With --model a cross-encoder reads query and text together instead; a good one is more accurate, and slower.
    -o writes .csv, .tsv or .jsonl.
    """
    from munjang.cli.collection import read_collection
    from munjang.cli.load_model import load_ranker

    check_rows_output(output)
    read = read_collection(file, columns)
    records = read.rows
    scorer = load_ranker(model, late=late, compute=compute)
    ranking = scorer.rank(query, read.texts, progress=True, **options)
    if ranking.scored < len(records):
        budget = options["budget_seconds"] or 0
        note(f"the budget of {budget:g} s was up after {ranking.scored:,} of {count(len(records), 'text')}; the rest keep their order")
    rows: list[dict[str, object]] = [
        {
            "rank": place,
            "id": records[found.index].id or str(found.index),
            "score": None if math.isnan(found.score) else round(found.score, 6),
            "text": found.text,
        }
        for place, found in enumerate(ranking.documents, 1)
    ]
    _deliver(rows, output, as_json=as_json)


def _deliver(rows: Sequence[dict[str, object]], output: Path | None, *, as_json: bool) -> None:
    if output is not None:
        write_rows(output, list(rows))
    if as_json:
        emit(rows)
    elif output is None:
        cells = [(str(row["rank"]), _score(row["score"]), str(row["id"]), str(row["text"])) for row in rows]
        print_table(("rank", "score", "id", "text"), cells, right=("rank", "score"), empty="no texts to rank")


def _score(score: object) -> str:
    return f"{score:.4f}" if isinstance(score, float) else "–"
