"""`munjang rerank`: a query and a file of texts → the texts, best answers first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.options import ComputeOption, FormatOption, JsonOption, OutputOption, TextColumnOption, examples, new_app
from munjang.cli.show import emit, note, print_table

app = new_app()


@app.command(
    epilog=examples(
        'munjang rerank "winter weather" candidates.txt --model my-reranker -k 5',
        'munjang rerank "겨울 날씨" news.csv --text-column title --model my-reranker --json',
    )
)
def rerank(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the texts should answer.")],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help='txt, csv, tsv, jsonl, json or parquet, also gzipped; "-" is standard input.')
    ],
    model: Annotated[str | None, typer.Option("--model", "-m", help="A cross-encoder's name or folder.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to show.")] = 10,
    budget: Annotated[float | None, typer.Option(min=0.0, help="Stop scoring after so many seconds.")] = None,
    text_column: TextColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="The column that holds ids.")] = None,
    format: FormatOption = None,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Order texts by how well they answer a query, with a cross-encoder.

    A cross-encoder reads the query and a text together: exact and slow. Let a search find the candidates first.
    """
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.text.readers import read_texts

    records = list(read_texts(file, text_column=text_column, id_column=id_column, format=format))
    scorer = CrossEncoder.load(model, compute=compute)
    ranking = scorer.rank(query, [record.text for record in records], k=k, budget_seconds=budget, progress=True)
    if ranking.scored < len(records):
        note(f"the budget of {budget or 0:g} s was up after {ranking.scored:,} of {len(records):,} texts; the rest keep their order")
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
        _write(output, rows)
    if as_json:
        emit(rows)
    elif output is None:
        cells = [(str(row["rank"]), _score(row["score"]), str(row["id"]), str(row["text"])) for row in rows]
        print_table(("rank", "score", "id", "text"), cells, right=("rank", "score"))


def _score(score: object) -> str:
    return f"{score:.4f}" if isinstance(score, float) else "–"


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    import json

    from munjang.whole_file import write_whole

    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
