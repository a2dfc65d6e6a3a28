"""`munjang rerank`: a query and a file of texts → the texts, best answers first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

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
from munjang.errors import UsageError
from munjang.models.cross_encoder import CrossEncoder
from munjang.types import DEFAULT_COMPUTE
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.cli.row_files import TextRow
    from munjang.types import Compute

app = new_app()


@app.command(
    epilog=examples(
        'munjang rerank "winter weather" candidates.txt --model my-reranker -k 5',
        'munjang rerank "겨울 날씨" news.csv --text-column title --model my-reranker --json',
        'munjang rerank "winter weather" candidates.txt --late',
    )
)
def rerank(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    file: TextsArgument,
    *,
    model: CrossModelOption = None,
    late: Annotated[
        bool, typer.Option("--late", help="Compare the query's tokens with those of each text (MaxSim); faster than a cross-encoder.")
    ] = False,
    options: Annotated[Chosen, Takes(CrossEncoder.rank)],
    columns: Columns,
    compute: ComputeOption = DEFAULT_COMPUTE,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank texts by how well they answer a query.

    A cross-encoder reads query and text together: accurate but slow. Let a search find the candidates first.
    With --late a sentence encoder reads each text once, and every token of the query is compared with every token of the text.
    -o writes .csv, .tsv or .jsonl.
    """
    from munjang.cli.collection import read_collection
    from munjang.cli.load_model import load_cross_encoder

    check_rows_output(output)
    read = read_collection(file, columns)
    records = read.rows
    if late:
        rows = _rank_late(query, records, model, compute)[: options["k"]] if options["budget_seconds"] is None else _refuse_budget()
        _deliver(rows, output, as_json=as_json)
        return
    scorer = load_cross_encoder(model, compute=compute)
    ranking = scorer.rank(query, read.texts, progress=True, **options)
    if ranking.scored < len(records):
        budget = options["budget_seconds"] or 0
        note(f"the budget of {budget:g} s was up after {ranking.scored:,} of {count(len(records), 'text')}; the rest keep their order")
    rows = [
        {
            "rank": place,
            "id": records[found.index].id or str(found.index),
            "score": None if math.isnan(found.score) else round(found.score, 6),
            "text": found.text,
        }
        for place, found in enumerate(ranking.documents, 1)
    ]
    _deliver(rows, output, as_json=as_json)


def _rank_late(query: str, records: Sequence[TextRow], model: str | None, compute: Compute) -> list[dict[str, object]]:
    from munjang.cli.load_model import load_for_search
    from munjang.library.late import score_texts

    queries, documents = load_for_search(model, compute=compute)
    scores = score_texts(query, [record.text for record in records], documents, query_encoder=queries)
    order = sorted(range(len(records)), key=lambda place: -scores[place])
    return [
        {"rank": rank, "id": records[place].id or str(place), "score": round(scores[place], 6), "text": records[place].text}
        for rank, place in enumerate(order, 1)
    ]


def _refuse_budget() -> NoReturn:
    raise UsageError("--budget is for a cross-encoder, --late scores all texts\n  leave one of them out")


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
