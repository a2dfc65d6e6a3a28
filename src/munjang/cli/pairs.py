"""`munjang pairs`: one file or library → its pairs of nearly the same meaning, groups of them, or its rows without near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.options import (
    UTF8,
    EncodingOption,
    FormatOption,
    JsonOption,
    LibraryComputeOption,
    ModelOption,
    NoQuotingOption,
    OutputOption,
    TextColumnOption,
    TextsArgument,
    examples,
    new_app,
)
from munjang.cli.row_files import TABLES, TEXTS, Columns, TextRow, check_rows_output, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.analyze.dedupe import Deduped
    from munjang.analyze.pairs import Mined

PAIRS, NEAR_DUPLICATES = 0.8, 0.95
"""The thresholds that are used when none is given."""

app = new_app()


@app.command(
    epilog=examples(
        "munjang pairs questions.csv --threshold 0.85",
        "munjang pairs questions.csv --max-overlap 0.3 -o paraphrases.csv",
        "munjang pairs news.jsonl --dedupe -o clean.jsonl",
        "munjang pairs news.db --threshold 0.9",
    )
)
def pairs(
    file: TextsArgument,
    threshold: Annotated[
        float | None, typer.Option(help="The least cosine that counts; 0.8, with --dedupe 0.95. `munjang calibrate` finds yours.")
    ] = None,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="The most pairs.")] = 1_000,
    max_overlap: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out pairs that share more than this part of their words.")
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Leave out pairs whose numbers, units, model codes or variants (Pro, Mini) differ.")
    ] = False,
    groups: Annotated[bool, typer.Option("--groups", help="Show which texts hang together instead of pairs.")] = False,
    dedupe: Annotated[bool, typer.Option("--dedupe", help="Keep the first of each kind; -o writes what stays.")] = False,
    output: OutputOption = None,
    model: ModelOption = None,
    text_column: TextColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="The column that holds ids.")] = None,
    format: FormatOption = None,
    encoding: EncodingOption = UTF8,
    no_quoting: NoQuotingOption = False,
    compute: LibraryComputeOption = None,
    dask: Annotated[str | None, typer.Option(help="For a folder of `munjang bulk`: a Dask scheduler's address, or local.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find texts of nearly the same meaning in one file or library.

    A library's documents are compared by the vectors it holds; so is a folder that `munjang bulk` wrote, which may be larger than memory.
    -o writes the pairs or, with --dedupe, the rows that stay, as .csv, .tsv or .jsonl; rows that stay also as .txt.
    """
    from munjang.analyze.dedupe import dedupe as drop_near_duplicates
    from munjang.analyze.pairs import mine
    from munjang.bulk.output import is_output
    from munjang.cli.bulk_pairs import show_bulk_pairs
    from munjang.cli.collection import encoder_for, read_collection, vectors_of

    check_rows_output(output, suffixes=TEXTS if dedupe else TABLES)
    if dedupe and (groups or numbers or max_overlap is not None):
        raise UsageError(
            "--dedupe goes with none of --groups, --numbers and --max-overlap: it drops every text that is close enough to one that stays"
        )
    if is_output(file):
        if dedupe or groups or numbers or max_overlap is not None:
            without = "--dedupe, --groups, --numbers and --max-overlap"
            raise UsageError(f"{file}: is a folder of munjang bulk, which gives pairs only, without {without}")
        show_bulk_pairs(file, threshold=PAIRS if threshold is None else threshold, top=top, dask=dask, output=output, as_json=as_json)
        return
    found_in = [read_collection(file, Columns(text_column, id_column, format, encoding, no_quoting))]
    [vectors] = vectors_of(found_in, encoder_for(found_in, model, compute=compute))
    rows, texts = found_in[0].rows, found_in[0].texts
    least = threshold if threshold is not None else NEAR_DUPLICATES if dedupe else PAIRS
    if dedupe:
        found = drop_near_duplicates(vectors, texts=texts, threshold=least)
        _show_deduped(found, rows, output, least, as_json=as_json)
        return
    mined = mine(vectors, texts=texts, threshold=least, top=top, max_overlap=max_overlap, numbers=numbers)
    if mined.cut:
        note(f"there are more pairs than the {top:,} best (--top)")
    if groups:
        _show_groups(mined, rows, output, least, as_json=as_json)
    else:
        _show_pairs(mined, rows, output, least, as_json=as_json)


def _show_pairs(mined: Mined, rows: Sequence[TextRow], output: Path | None, threshold: float, *, as_json: bool) -> None:
    found = [(round(pair.score, 6), rows[pair.a], rows[pair.b]) for pair in mined.pairs]
    if output is not None:
        flat = [{"score": s, "a": a.name(), "b": b.name(), "text_a": a.text, "text_b": b.text} for s, a, b in found]
        write_rows(output, flat)
    if as_json:
        same = [[rows[row].facts() for row in group] for group in mined.same]
        emit({"pairs": [{"score": s, "a": a.facts(), "b": b.facts()} for s, a, b in found], "same": same})
        return
    if output is None:
        table = ([f"{s:.3f}", a.name(), a.text, b.name(), b.text] for s, a, b in found)
        print_table(["score", "a", "", "b", " "], table, right=["score"], empty=f"no pairs above {threshold:.4g}")
    repeats = sum(len(group) - 1 for group in mined.same)
    print_facts([("texts", f"{len(rows):,}"), ("pairs", f"{len(found):,}"), ("repeated texts", f"{repeats:,}"), *_written(output)])


def _show_groups(mined: Mined, rows: Sequence[TextRow], output: Path | None, threshold: float, *, as_json: bool) -> None:
    groups = mined.groups()
    if output is not None:
        write_rows(output, [{"group": number, **rows[row].facts()} for number, group in enumerate(groups, 1) for row in group])
    if as_json:
        emit([[rows[row].facts() for row in group] for group in groups])
        return
    if output is None:
        lines = ([str(number), rows[row].name(), rows[row].text] for number, group in enumerate(groups, 1) for row in group)
        print_table(["group", "row", "text"], lines, right=["group"], empty=f"no groups: no pairs above {threshold:.4g}")
    print_facts([("texts", f"{len(rows):,}"), ("groups", f"{len(groups):,}"), *_written(output)])


def _show_deduped(found: Deduped, rows: Sequence[TextRow], output: Path | None, threshold: float, *, as_json: bool) -> None:
    if output is not None:
        kept = [rows[row] for row in found.kept]
        write_rows(output, [{"text": row.text} if output.suffix.lower() == ".txt" else row.values for row in kept])
    dropped = [(round(each.score, 6), rows[each.row], rows[each.kept]) for each in found.dropped]
    if as_json:
        gone = [{**row.facts(), "kept": kept.facts(), "score": score} for score, row, kept in dropped]
        emit({"rows": len(rows), "kept": len(found.kept), "dropped": gone, "output": None if output is None else str(output)})
        return
    if output is None:
        table = ([f"{s:.3f}", row.name(), row.text, kept.name(), kept.text] for s, row, kept in dropped)
        print_table(["score", "goes", "", "stays", " "], table, right=["score"], empty=f"no near-duplicates above {threshold:.4g}")
    print_facts([("texts", f"{len(rows):,}"), ("kept", f"{len(found.kept):,}"), ("dropped", f"{len(dropped):,}"), *_written(output)])


def _written(output: Path | None) -> list[tuple[str, str]]:
    return [] if output is None else [("written to", str(output))]
