"""`munjang search`: a question and a library → the documents that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from munjang.cli.library_files import LibraryArgument, open_with_model
from munjang.cli.options import Chosen, JsonOption, ModelChoice, OutputOption, Takes, examples, new_app
from munjang.cli.row_files import check_rows_output, write_rows
from munjang.cli.show import emit, note, one_line, print_facts, print_table
from munjang.errors import InputError, MunjangError, UsageError
from munjang.library.library import Library

if TYPE_CHECKING:
    from munjang.library.results import Hit
    from munjang.types import Scorer

TOKEN_PAIRS = 5
"""Pairs of tokens that --explain shows."""

app = new_app()


@app.command(
    epilog=examples(
        'munjang search news.db "winter weather" -k 5',
        'munjang search news.db "겨울 날씨" --where "year >= 2020"',
        'munjang search news.db "ISO 9001" --by words',
        "munjang search news.db --like a --unlike b --json",
        'munjang search papers.db "heat transfer" --rerank --explain',
        "munjang search news.db - -k 3 -o answers.csv < questions.txt",
    )
)
def search(
    library: LibraryArgument,
    queries: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY…", help='One or more queries; "-" reads one query per line from standard input.'),
    ] = None,
    *,
    options: Annotated[Chosen, Takes(Library.search)],
    rerank: Annotated[
        bool | None,
        typer.Option(
            "--rerank/--no-rerank",
            help="Re-rank the best 50 hits by their tokens (the default where the library keeps token vectors; else they are made now).",
            show_default=False,
        ),
    ] = None,
    reranker: Annotated[str | None, typer.Option(help="A cross-encoder's name or folder, which re-ranks instead.")] = None,
    hybrid: Annotated[bool, typer.Option("--hybrid", hidden=True)] = False,
    output: OutputOption = None,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Search a library by meaning and words.

    Token vectors count too where the library has them; --by looks at meaning or words alone.
    A score goes from 0 (nothing in common) to 1 (the most that is possible); --explain shows its parts.
    A long document is found by its best passage, which is shown with its position.
    -o writes one row per hit as .csv, .tsv or .jsonl.
    """
    check_rows_output(output)
    asked: list[str | None] = [*_read_queries(queries)] if queries else [None]
    if asked == [None] and not options["like"]:
        raise UsageError("no query was given, expected a QUERY, or --like with a document's id")
    if hybrid:
        note("--hybrid is the default now, and will be removed in 0.3\n  leave it out; --by meaning looks at meaning alone")
    if hybrid and options["by"] is not None:
        raise UsageError("--hybrid and --by contradict each other\n  leave one of them out")
    if options["by"] == "words" and (options["like"] or options["unlike"]):
        raise UsageError("--like and --unlike change what a query means, which --by words does not look at\n  leave --by out")
    if options["budget_seconds"] is not None and not reranker:
        raise UsageError("--budget limits a cross-encoder, but none re-ranks\n  name one with --reranker, or leave --budget out")
    if options["rerank_share"] is not None and rerank is False:
        raise UsageError("--rerank-share is the re-ranker's weight, but nothing is re-ranked\n  leave --no-rerank or --rerank-share out")
    if rerank is False and reranker:
        raise UsageError("--no-rerank and --reranker contradict each other\n  leave one of them out")
    needs_no_model = options["by"] == "words" and not (rerank or chosen_model.model or chosen_model.compute)
    with Library.open(library, create=False) if needs_no_model else _open_with(library, chosen_model) as opened:
        has_tokens = opened.info().token_vectors is not None
        if options["rerank_share"] is not None and not (rerank or reranker or has_tokens):
            raise UsageError(
                "--rerank-share is the re-ranker's weight, but nothing is re-ranked\n  add --rerank, or leave --rerank-share out"
            )
        scorer = None if reranker is None else _scorer(reranker)
        notes: list[str] = []
        answers = [opened.search(query, rerank=rerank if scorer is None else scorer, notes=notes, **options) for query in asked]
        for message in dict.fromkeys(notes):
            note(message)
        if not any(answers) and not opened.info().documents:
            note(f"{library}: the library is empty\n  add documents with munjang add")
        has_scorer = scorer is not None or bool(rerank) or (has_tokens and rerank is not False)
        rows = [[_row(hit, query, opened, has_scorer=has_scorer) for hit in hits] for query, hits in zip(asked, answers, strict=True)]
    if output is not None:
        write_rows(output, [_flat(query, rank, row) for query, each in zip(asked, rows, strict=True) for rank, row in enumerate(each, 1)])
    if as_json:
        alone = len(asked) == 1 and "-" not in (queries or ())
        emit(rows[0] if alone else [{"query": query, "hits": each} for query, each in zip(asked, rows, strict=True)])
        return
    if output is not None:
        print_facts([("queries", f"{len(asked):,}"), ("hits", f"{sum(map(len, rows)):,}"), ("written to", str(output))])
        return
    for query, hits, each in zip(asked, answers, rows, strict=True):
        _show(query if len(asked) > 1 else None, hits, each)


def _open_with(library: str, chosen: ModelChoice) -> Library:
    return open_with_model(library, chosen.model, compute=chosen.compute)


def _read_queries(queries: Sequence[str]) -> list[str]:
    """Return the queries in order, with the lines of standard input in the place of "-"."""
    if queries.count("-") > 1:
        raise UsageError('"-" can stand in one place only: standard input is read once')
    if "-" not in queries:
        return [*queries]
    from munjang.text.readers import read_texts

    lines = [record.text for record in read_texts("-") if record.text.strip()]
    if not lines:
        raise InputError("stdin: holds no query, expected at least one line")
    place = queries.index("-")
    return [*queries[:place], *lines, *queries[place + 1 :]]


def _flat(query: str | None, rank: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return a hit as one line of a file; metadata and what explains it stay one value each."""
    return {"query": query, "rank": rank, **row}


def _scorer(name: str) -> Scorer:
    from munjang.cli.load_model import load_cross_encoder

    return load_cross_encoder(name)


def _row(hit: Hit, query: str | None, library: Library, *, has_scorer: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"id": hit.id, "score": round(hit.score, 6), "text": hit.text, "metadata": hit.metadata}
    if hit.stop - hit.start < len(hit.text):
        row |= {"passage": hit.passage, "start": hit.start, "stop": hit.stop}
    if hit.citation is not None:
        row["citation"] = hit.citation
    if has_scorer:
        row |= {"reranked": hit.reranked, "scored_by": hit.scored_by}
    if hit.explanation is not None:
        pairs = [] if hit.explanation.matches else _token_pairs(query, hit.passage, library)
        row["explanation"] = {**asdict(hit.explanation), "tokens": pairs}
    return row


def _token_pairs(query: str | None, passage: str, library: Library) -> list[dict[str, Any]]:
    """Return the pairs of tokens that are most alike, where the model can show them."""
    from munjang.models.inspect import compare_tokens
    from munjang.models.prompted_encoder import PromptedEncoder

    if query is None or not isinstance(library.encoder, PromptedEncoder):
        return []
    try:
        compared = compare_tokens(library.encoder.model, query, passage)
    except MunjangError:
        return []
    return [
        {"query": compared.first.tokens[pair.first].text, "text": compared.second.tokens[pair.second].text, "cosine": round(pair.cosine, 4)}
        for pair in compared.best_pairs[:TOKEN_PAIRS]
    ]


def _show(title: str | None, hits: Sequence[Hit], rows: Sequence[dict[str, Any]]) -> None:
    if not hits and title is None:
        note("nothing was found")
        return
    cells = [(f"{hit.score:.4f}", hit.id, _place(hit), hit.passage) for hit in hits]
    print_table(("score", "id", "place", "text"), cells, right=("score",), title=title, empty="nothing was found")
    for hit, row in zip(hits, rows, strict=True):
        if hit.explanation is not None:
            print(f"{hit.id}: {_explain(row['explanation'])}")
            if hit.explanation.matches:
                print(f"  {one_line(mark_matches(hit))}")


def mark_matches(hit: Hit) -> str:
    """Return the passage with «» around each word that a word of the query met."""
    marked, at = "", hit.start
    for start, stop in sorted({(each.start, each.stop) for each in hit.explanation.matches} if hit.explanation else ()):
        if start >= at:
            marked += f"{hit.text[at:start]}«{hit.text[start:stop]}»"
            at = stop
    return marked + hit.text[at : hit.stop]


def _place(hit: Hit) -> str:
    if hit.citation is not None:
        return hit.citation
    return "whole" if hit.stop - hit.start == len(hit.text) else f"{hit.start:,}–{hit.stop:,} of {len(hit.text):,}"


def _explain(facts: dict[str, Any]) -> str:
    parts = []
    if facts["cosine"] is not None:
        parts.append(f"meaning {facts['cosine']:.3f} (rank {facts['meaning_rank']})")
    if facts["bm25"] is not None:
        share = "" if facts["words_share"] is None else f", {facts['words_share']:.3f} of the highest"
        parts.append(f"words {facts['bm25']:.2f} (rank {facts['words_rank']}{share})")
    if facts["words"]:
        parts.append("shared: " + " ".join(facts["words"]))
    if facts["late"] is not None:
        parts.append(f"tokens {facts['late']:.3f}")
    if facts["matches"]:
        parts.append("met: " + ", ".join(f"{each['query']}~{each['text']} {each['cosine']:.2f}" for each in facts["matches"]))
    if facts["tokens"]:
        parts.append("tokens: " + ", ".join(f"{pair['query']}~{pair['text']} {pair['cosine']:.2f}" for pair in facts["tokens"]))
    return one_line("; ".join(parts))
