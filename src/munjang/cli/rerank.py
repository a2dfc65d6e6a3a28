"""`munjang rerank`: a query and a file of texts → the texts, best answers first."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from munjang.cli.options import (
    Columns,
    ComputeOption,
    CrossModelOption,
    JsonOption,
    OutputOption,
    TextsArgument,
    examples,
    new_app,
)
from munjang.cli.row_files import check_rows_output, write_rows
from munjang.cli.show import emit, note, print_table
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        'munjang rerank "winter weather" candidates.txt --model my-reranker -k 5',
        'munjang rerank "겨울 날씨" news.csv --text-column title --model my-reranker --json',
    )
)
def rerank(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    file: TextsArgument,
    *,
    model: CrossModelOption = None,
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="Number of results.")] = 10,
    budget: Annotated[float | None, typer.Option(min=0.0, help="Stop scoring after this many seconds.")] = None,
    columns: Columns,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank texts by how well they answer a query (cross-encoder).

    A cross-encoder reads query and text together: accurate but slow. Let a search find the candidates first.
    -o writes .csv, .tsv or .jsonl.
    """
    from munjang.cli.collection import read_collection
    from munjang.cli.load_model import load_cross_encoder

    check_rows_output(output)
    read = read_collection(file, columns)
    records = read.rows
    scorer = load_cross_encoder(model, compute=compute)
    ranking = scorer.rank(query, read.texts, k=k, budget_seconds=budget, progress=True)
    if ranking.scored < len(records):
        note(f"the budget of {budget or 0:g} s was up after {ranking.scored:,} of {count(len(records), 'text')}; the rest keep their order")
    rows = [
        {
            "rank": place,
            "id": records[found.index].id or str(found.index),
            "score": None if math.isnan(found.score) else round(found.score, 6),
            "text": found.text,
        }
        for place, found in enumerate(ranking.documents, 1)
    ]
    if output is not None:
        write_rows(output, rows)
    if as_json:
        emit(rows)
    elif output is None:
        cells = [(str(row["rank"]), _score(row["score"]), str(row["id"]), str(row["text"])) for row in rows]
        print_table(("rank", "score", "id", "text"), cells, right=("rank", "score"), empty="no texts to rank")


def _score(score: object) -> str:
    return f"{score:.4f}" if isinstance(score, float) else "–"
