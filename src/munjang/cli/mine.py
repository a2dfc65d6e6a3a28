"""`munjang mine`: pairs of texts that belong together → triplets with hard negatives."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.data_options import ColumnOption, LayoutOption, SkipBadOption, read_options, tell
from munjang.cli.load_model import load_encoder
from munjang.cli.options import Chosen, ComputeOption, JsonOption, ModelOption, Takes, examples, new_app
from munjang.cli.scores import check_output
from munjang.cli.show import emit, print_facts
from munjang.data import read_text_pairs
from munjang.data.files import check_format
from munjang.errors import InputError
from munjang.text.readers import read_texts
from munjang.train.mine import mine_negatives, write_triplets
from munjang.types import DEFAULT_COMPUTE
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
    *,
    options: Annotated[Chosen, Takes(mine_negatives)],
    compute: ComputeOption = DEFAULT_COMPUTE,
    as_json: JsonOption = False,
) -> None:
    """Mine hard negatives for pairs of texts.

    A hard negative is a text that the model mistakes for an answer. Margins exclude false negatives: texts so close that they are
    probably right, too.
    """
    check_output(output)
    check_format(output)
    data = read_text_pairs(pairs, read_options(layout=layout, columns=column, skip_bad=skip_bad))
    tell(data)
    texts = None if corpus is None else [record.text for record in read_texts(corpus, text_column=text_column)]
    mined = mine_negatives(load_encoder(model, compute=compute), data.rows, texts, **options)
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
