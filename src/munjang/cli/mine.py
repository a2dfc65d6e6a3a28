"""`munjang mine`: pairs of texts that belong together → triplets with hard negatives."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from munjang.cli.data_options import ColumnOption, LayoutOption, SkipBadOption, read_options, tell
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, examples, new_app
from munjang.cli.scores import check_output
from munjang.cli.show import emit, print_facts
from munjang.errors import InputError
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        "munjang mine questions.tsv -o triplets.jsonl --relative-margin 0.05",
        "munjang mine questions.tsv --corpus passages.txt --first-rank 5 --last-rank 60 --negatives 3 -o triplets.tsv",
    )
)
def mine(
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="A file of pairs: a text and one that belongs to it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Triplets, as .jsonl, .tsv or .csv.")],
    corpus: Annotated[
        str | None, typer.Option(help="Texts to choose negatives from. Default: the second texts of the other pairs.")
    ] = None,
    text_column: Annotated[str | None, typer.Option("--text-column", help="The column of --corpus with the text.")] = None,
    model: ModelOption = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    skip_bad: SkipBadOption = False,
    negatives: Annotated[int, typer.Option(min=1, help="Negatives for each pair.")] = 1,
    first_rank: Annotated[int, typer.Option(min=0, help="Skip this many of the closest texts.")] = 0,
    last_rank: Annotated[int, typer.Option(min=1, help="The last rank to consider.")] = 50,
    absolute_margin: Annotated[float | None, typer.Option(help="Minimum difference between the positive's and a negative's score.")] = None,
    relative_margin: Annotated[float | None, typer.Option(help="The same, relative to the positive's score, such as 0.05.")] = None,
    max_score: Annotated[float | None, typer.Option(help="Maximum score of a negative.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Minimum score of a negative.")] = None,
    sampling: Annotated[Literal["top", "random"], typer.Option(help="Take the closest, or any within the ranks.")] = "top",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")] = 0,
    compute: ComputeOption = "float32",
    as_json: JsonOption = False,
) -> None:
    """Mine hard negatives for pairs of texts.

    A hard negative is a text that the model mistakes for an answer. Margins exclude false negatives: texts so close that they are
    probably right, too.
    """
    from munjang.cli.load_model import load_encoder
    from munjang.data import read_text_pairs
    from munjang.data.files import check_format
    from munjang.text.readers import read_texts
    from munjang.train.mine import MineOptions, mine_negatives, write_triplets

    check_output(output)
    check_format(output)
    options = MineOptions(
        negatives=negatives,
        first_rank=first_rank,
        last_rank=last_rank,
        absolute_margin=absolute_margin,
        relative_margin=relative_margin,
        max_score=max_score,
        min_score=min_score,
        sampling=sampling,
        seed=seed,
    )
    data = read_text_pairs(pairs, read_options(layout=layout, columns=column, skip_bad=skip_bad))
    tell(data)
    texts = None if corpus is None else [record.text for record in read_texts(corpus, text_column=text_column)]
    mined = mine_negatives(load_encoder(model, compute=compute), data.rows, texts, options=options)
    if not mined.triplets:
        raise InputError(
            f"{pairs}: none of the {count(mined.pairs, 'pair')} has a negative within the ranks, margins and scores; nothing was written\n"
            "  widen them, or name a larger corpus"
        )
    written = write_triplets(mined.triplets, output)
    facts = {name: value for name, value in asdict(mined).items() if name != "triplets"}
    if as_json:
        emit({**facts, "triplets": written, "output": str(output)})
        return
    print_facts(
        [
            ("pairs", f"{mined.pairs:,}"),
            ("triplets", f"{written:,}"),
            ("pairs with too few negatives", f"{mined.short:,}"),
            ("pairs with none", f"{mined.empty:,}"),
            ("mean score of positives", f"{mined.mean_positive:.4f}"),
            ("mean score of negatives", f"{mined.mean_negative:.4f}"),
            ("written to", str(output)),
        ]
    )
