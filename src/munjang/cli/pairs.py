"""`munjang pairs`: one file or library → its pairs of nearly the same meaning, groups of them, or its rows without near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from munjang.analyze.dedupe import Deduped
from munjang.analyze.dedupe import dedupe as drop_near_duplicates
from munjang.analyze.pairs import MinedPairs, mine_pairs
from munjang.bulk.dedupe_output import dedupe_output
from munjang.bulk.output import is_output
from munjang.cli.collection import encoder_for, read_collection, vectors_of
from munjang.cli.options import (
    Chosen,
    Columns,
    JsonOption,
    ModelChoice,
    OutputOption,
    Takes,
    TextsArgument,
    examples,
    new_app,
)
from munjang.cli.pairs_of_folder import REPEATS, show_deduped_folder, show_folder_pairs
from munjang.cli.row_files import TABLES, TEXTS, TextRow, check_rows_output, stream_rows, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.errors import UsageError
from munjang.options import default_of

app = new_app()


@app.command(
    epilog=examples(
        "munjang pairs questions.csv --threshold 0.85",
        "munjang pairs questions.csv --max-overlap 0.3 -o paraphrases.csv",
        "munjang pairs news.jsonl --dedupe -o clean.jsonl --dropped repeats.jsonl",
        "munjang pairs vectors/ --dedupe -o clean.jsonl",
        "munjang pairs news.db --threshold 0.9",
    )
)
def pairs(
    file: TextsArgument,
    *,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=-1,
            help=f"Minimum cosine of a pair. Default: {default_of(mine_pairs, 'threshold')}, with --dedupe "
            f"{default_of(drop_near_duplicates, 'threshold')}; `munjang calibrate` finds a suitable one.",
        ),
    ] = None,
    options: Annotated[Chosen, Takes(mine_pairs, without=("threshold",))],
    groups: Annotated[bool, typer.Option("--groups", help="Show groups of connected texts instead of pairs.")] = False,
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="Remove near-duplicates, keeping the first; -o writes the rows that stay.")
    ] = False,
    output: OutputOption = None,
    dropped: Annotated[
        Path | None, typer.Option(help="With --dedupe: write the rows that go, what each repeats, and the cosine, as .csv, .tsv or .jsonl.")
    ] = None,
    folder_options: Annotated[Chosen, Takes(dedupe_output, without=("threshold",))],
    columns: Columns,
    chosen_model: ModelChoice,
    dask: Annotated[str | None, typer.Option(help="For a folder of `munjang bulk`: a Dask scheduler's address, or local.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find texts that mean nearly the same.

    A library is compared by its stored vectors, and so is a folder written by `munjang bulk`, which may be larger than memory.
    -o writes the pairs or, with --dedupe, the rows that stay, as .csv, .tsv or .jsonl; rows that stay also as .txt.
    """
    check_rows_output(output, suffixes=TEXTS if dedupe else TABLES)
    check_rows_output(dropped)
    filtered = options["numbers"] or options["max_overlap"] is not None
    if dedupe and (groups or filtered):
        raise UsageError(
            "--dedupe goes with none of --groups, --numbers and --max-overlap: it drops every text that is close enough to one that stays"
        )
    is_stream = is_output(file) or (dedupe and file.lower().endswith(".npy"))
    if dask is not None and not is_stream:
        raise UsageError(f"{file}: is compared on this machine; --dask is for the folder of a finished `munjang bulk`")
    if dropped is not None and not dedupe:
        raise UsageError("--dropped says what --dedupe drops, expected both")
    least = default_of(drop_near_duplicates if dedupe else mine_pairs, "threshold") if threshold is None else threshold
    if dedupe and is_stream:
        show_deduped_folder(file, least, output=output, dropped=dropped, dask=dask, as_json=as_json, **folder_options)
        return
    if is_stream:
        if groups or filtered:
            raise UsageError(f"{file}: is a folder of munjang bulk, which gives pairs only, without --groups, --numbers and --max-overlap")
        show_folder_pairs(file, threshold=least, top=options["top"], dask=dask, output=output, as_json=as_json)
        return
    found_in = [read_collection(file, columns)]
    [vectors] = vectors_of(found_in, encoder_for(found_in, chosen_model.model, compute=chosen_model.compute))
    rows, texts = found_in[0].rows, found_in[0].texts
    if dedupe:
        found = drop_near_duplicates(vectors, texts=texts, threshold=least)
        _show_deduped(found, rows, output, dropped, least, as_json=as_json)
        return
    mined = mine_pairs(vectors, texts=texts, threshold=least, **options)
    if mined.cut:
        note(f"there are more pairs than the {options['top']:,} best (--top)")
    if groups:
        _show_groups(mined, rows, output, least, as_json=as_json)
    else:
        _show_pairs(mined, rows, output, least, as_json=as_json)


def _show_pairs(mined: MinedPairs, rows: Sequence[TextRow], output: Path | None, threshold: float, *, as_json: bool) -> None:
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
    print_facts([("texts", f"{len(rows):,}"), ("pairs", f"{len(found):,}"), ("repeated texts", f"{repeats:,}"), *_output_fact(output)])


def _show_groups(mined: MinedPairs, rows: Sequence[TextRow], output: Path | None, threshold: float, *, as_json: bool) -> None:
    groups = mined.groups()
    if output is not None:
        write_rows(output, [{"group": number, **rows[row].facts()} for number, group in enumerate(groups, 1) for row in group])
    if as_json:
        emit([[rows[row].facts() for row in group] for group in groups])
        return
    if output is None:
        lines = ([str(number), rows[row].name(), rows[row].text] for number, group in enumerate(groups, 1) for row in group)
        print_table(["group", "row", "text"], lines, right=["group"], empty=f"no groups: no pairs above {threshold:.4g}")
    print_facts([("texts", f"{len(rows):,}"), ("groups", f"{len(groups):,}"), *_output_fact(output)])


def _show_deduped(
    found: Deduped, rows: Sequence[TextRow], output: Path | None, repeats: Path | None, threshold: float, *, as_json: bool
) -> None:
    if output is not None:
        kept = [rows[row] for row in found.kept]
        write_rows(output, [{"text": row.text} if output.suffix.lower() == ".txt" else row.values for row in kept])
    dropped = [(round(each.score, 6), rows[each.row], rows[each.kept]) for each in found.dropped]
    if repeats is not None:
        stream_rows(repeats, REPEATS, (dict(zip(REPEATS, (row.name(), kept.name(), s), strict=True)) for s, row, kept in dropped))
    if as_json:
        gone = [{**row.facts(), "kept": kept.facts(), "score": score} for score, row, kept in dropped]
        emit({"rows": len(rows), "kept": len(found.kept), "dropped": gone, "output": None if output is None else str(output)})
        return
    if output is None:
        table = ([f"{s:.3f}", row.name(), row.text, kept.name(), kept.text] for s, row, kept in dropped)
        print_table(["score", "goes", "", "stays", " "], table, right=["score"], empty=f"no near-duplicates above {threshold:.4g}")
    print_facts([("texts", f"{len(rows):,}"), ("kept", f"{len(found.kept):,}"), ("dropped", f"{len(dropped):,}"), *_output_fact(output)])


def _output_fact(output: Path | None) -> list[tuple[str, str]]:
    return [] if output is None else [("written to", str(output))]
