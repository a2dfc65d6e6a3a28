"""`munjang tune`: questions and a library → how much words and token vectors weigh in its searches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from munjang.cli.library_files import LibraryArgument, open_with_model
from munjang.cli.options import Chosen, JsonOption, ModelChoice, Takes, examples, new_app
from munjang.cli.show import emit, print_facts
from munjang.errors import InputError
from munjang.library.tune import tune as tune_library

app = new_app()


@app.command(epilog=examples("munjang tune news.db", "munjang tune news.db questions.csv --dry-run"))
def tune(
    library: LibraryArgument,
    questions: Annotated[
        str | None,
        typer.Argument(metavar="QUESTIONS", help="A file of questions (column text), each with the id of a document that answers it."),
    ] = None,
    *,
    options: Annotated[Chosen, Takes(tune_library)],
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Choose how much words and token vectors weigh in searches.

    Without QUESTIONS, titles in the metadata are the questions, else first sentences of documents with several passages.
    The weights are stored in the library if they rank questions better that they were not chosen on; otherwise the built-in ones stay.
    """
    pairs = None if questions is None else _read_pairs(questions)
    with open_with_model(library, chosen_model.model, compute=chosen_model.compute) as opened:
        report = tune_library(opened, pairs, **options)
    if as_json:
        emit(asdict(report))
        return
    facts = [("questions", f"{report.questions:,} from {report.source}"), ("nDCG@10, built-in weights", f"{report.built_in:.4f}")]
    facts += [("nDCG@10, chosen on other questions", f"{report.tuned:.4f}"), ("weight of words", f"{report.weights.words:g}")]
    facts += [("weight of tokens", f"{report.weights.tokens:g}")]
    kept = "stored" if options["write"] else "not stored (--dry-run)"
    print_facts([*facts, ("weights", kept if report.changed else "built-in: the chosen ones are not better")])


def _read_pairs(path: str) -> list[tuple[str, str]]:
    from munjang.text.readers import read_texts

    pairs = [(record.text, str(record.id)) for record in read_texts(path) if record.id is not None]
    if not pairs:
        raise InputError(f"{path}: holds no question with the id of a document, expected the columns text and id")
    return pairs
