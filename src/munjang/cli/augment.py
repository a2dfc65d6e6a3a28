"""`munjang augment`: texts → pairs of near ones with a cross-encoder's scores, for a sentence encoder to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import numpy as np
import typer

from munjang.cli.load_model import ProgressScorer, load_cross_encoder, load_encoder
from munjang.cli.options import Chosen, ComputeOption, JsonOption, ModelOption, Takes, TextColumnOption, examples, new_app
from munjang.cli.show import emit, note, print_facts
from munjang.data import ReadOptions, read_any
from munjang.data.files import check_format
from munjang.data.layouts import recognise
from munjang.data.rows import LabelledText, Triplet
from munjang.errors import InputError, UsageError
from munjang.text.readers import read_texts
from munjang.train.augment import label_by_cosine, label_pairs, sample_pairs, write_silver
from munjang.types import DEFAULT_COMPUTE, Encoder
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        "munjang augment gold.tsv --cross my-cross-encoder --model my-model -o silver.csv",
        "munjang augment sentences.txt --cosine --model my-model -o lessons.csv",
        "munjang augment sentences.txt --cross my-cross-encoder --strategy bm25 --per-text 5 --limit 20000 -o silver.jsonl",
    )
)
def augment(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Texts, or pairs of texts (labelled or not), which are not repeated in the output.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Silver pairs, as .csv, .tsv or .jsonl.")],
    cross: Annotated[str | None, typer.Option("--cross", help="The cross-encoder that labels; a name or folder.")] = None,
    model: ModelOption = None,
    *,
    options: Annotated[Chosen, Takes(sample_pairs)],
    labels: Annotated[Chosen, Takes(label_pairs)],
    cosine: Annotated[
        bool, typer.Option("--cosine", help="Label with the sentence encoder's cosine instead, to train a cross-encoder.")
    ] = False,
    text_column: TextColumnOption = None,
    compute: ComputeOption = DEFAULT_COMPUTE,
    as_json: JsonOption = False,
) -> None:
    """Label pairs with a cross-encoder (Augmented SBERT).

    Pairs are neighbours among the texts, by words (BM25) and by meaning. Train a sentence encoder on human labels and these together.
    With --cosine the roles are reversed: a new cross-encoder first learns the sentence encoder's scores.
    """
    check_format(output)
    if cosine and cross is not None:
        raise UsageError("--cosine and --cross both choose the labels\n  leave out one of them")
    if not cosine and cross is None:
        raise UsageError("nothing is there to label the pairs\n  name a cross-encoder with --cross, or take the model's scores by --cosine")
    texts, known = _texts(file, text_column)
    note(count(len(set(texts)), "different text") + (f", {count(len(known), 'pair')} of them are known" if known else ""))
    scorer = None if cosine else ProgressScorer(load_cross_encoder(cross, compute=compute))
    encoder = None if options["strategy"] == "bm25" and not cosine else load_encoder(model, compute=compute)
    pairs = sample_pairs(texts, encoder=encoder, known=known, **options)
    silver = label_pairs(scorer, pairs, **labels) if scorer else label_by_cosine(cast("Encoder", encoder), pairs)
    written = write_silver(silver, output)
    scores = np.array([pair.score for pair in silver])
    quartiles = [round(float(value), 4) for value in np.quantile(scores, (0.25, 0.5, 0.75))]
    if as_json:
        emit({"texts": len(set(texts)), "known": len(known), "pairs": written, "quartiles": quartiles, "output": str(output)})
        return
    facts = [("pairs", f"{written:,}"), ("quartiles of the scores", ", ".join(f"{value:.3f}" for value in quartiles))]
    print_facts([*facts, ("written to", str(output))])


def _texts(file: str, text_column: str | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Return all texts of a file, and the pairs that stand there already."""

    try:
        plain = text_column is not None or file == "-" or file.endswith((".txt", ".txt.gz")) or recognise(file)[0].kind == "texts"
    except InputError:  # no layout of pairs, so a file of texts, or an error that its reader names
        plain = True
    if plain:
        return [record.text for record in read_texts(file, text_column=text_column)], []
    pairs: list[tuple[str, str]] = []
    # the file's own scores are not used, so any scale will do
    for row in read_any(file, ReadOptions(scale=(-1e12, 1e12))).rows:
        if isinstance(row, Triplet):
            pairs += [(row.anchor, row.positive), (row.anchor, row.negative)]
        else:
            assert not isinstance(row, LabelledText)  # a file of texts, which was read above
            pairs.append((row.a, row.b))
    return [text for pair in pairs for text in pair], pairs
