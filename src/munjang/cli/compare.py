"""`munjang compare`: two models on one data set → the difference, its interval, and how likely it is by chance (paired bootstrap)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.data_options import (
    ColumnOption,
    FileArgument,
    LabelOption,
    LayoutOption,
    ScaleOption,
    SkipBadOption,
    SplitOption,
    facts_of,
    located,
    read_options,
    tell,
)
from munjang.cli.options import ComparedModelArgument, ComputeOption, JsonOption, OutputOption, examples, new_app
from munjang.cli.scores import check_output, deliver, hundred, interval_text, p_text
from munjang.cli.show import print_table
from munjang.errors import InputError, UsageError, quote
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.data.read import AnyDataset
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.compare import Against, Comparison
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.types import Compute

app = new_app()


@app.command(
    epilog=examples(
        "munjang compare all-MiniLM-L6-v2 my-model sts-test.tsv", "munjang compare old-model new-model scifact --metric recall@100"
    )
)
def compare(
    a: ComparedModelArgument,
    b: Annotated[str, typer.Argument(metavar="MODEL", help="A second model's name or folder.")],
    file: FileArgument,
    metric: Annotated[
        str | None, typer.Option(help="spearman (default) or pearson for scored pairs; ndcg@10 (default), mrr@10, … for retrieval.")
    ] = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    scale: ScaleOption = None,
    label: LabelOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: Annotated[int | None, typer.Option(min=1, help="Bootstrap resamples; 10,000, or 1,000 for same/different pairs.")] = None,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two models on a data set, with a significance test.

    Both are scored on the same resampled rows. Reads scored pairs, same/different pairs and retrieval sets.
    """
    from munjang.cli.load_model import load_encoder
    from munjang.data.read import read_any

    check_output(output)
    if _is_corpus(file):
        models, found, facts = _on_corpus((a, b), Path(file), metric=metric or "ndcg@10", split=split, resamples=resamples, compute=compute)
    else:
        with located(file, split=split) as path:
            data = read_any(path, read_options(layout=layout, columns=column, scale=scale, labels=label, skip_bad=skip_bad))
        tell(data)
        _check(data, metric)
        models = load_encoder(a, compute=compute), load_encoder(b, compute=compute)
        found, facts = _on_rows(models, data, metric, resamples), facts_of(data)
    names = _names(models, (a, b))
    deliver({**found.to_json(), "model_a": names[0], "model_b": names[1], **facts}, output=output, as_json=as_json)
    if not as_json:
        _print(found, names)


def _on_rows(models: tuple[PromptedEncoder, PromptedEncoder], data: AnyDataset, metric: str | None, resamples: int | None) -> Comparison:
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.bootstrap import RESAMPLES
    from munjang.evaluate.compare import compare_pairs, compare_sts

    scored: list[ScoredPair] = [row for row in data.rows if isinstance(row, ScoredPair)]
    if scored:
        against: Against = "pearson" if metric == "pearson" else "spearman"
        return compare_sts(*models, scored, against=against, resamples=resamples or RESAMPLES)
    labelled: list[LabelledPair] = [row for row in data.rows if isinstance(row, LabelledPair)]
    return compare_pairs(*models, labelled, resamples=resamples or 1_000)


def _check(data: AnyDataset, metric: str | None) -> None:
    """Refuse what cannot be compared before a model is loaded."""
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.pairs import make_binary_labels

    known = {ScoredPair: (None, "spearman", "pearson"), LabelledPair: (None, "ap")}
    if not data.rows:
        raise InputError(f"{data.source}: no rows, expected some to compare on")
    allowed = known.get(type(data.rows[0]))
    if allowed is None:
        raise InputError(f"{data.source}: read as {data.layout}, expected scored pairs, same/different pairs or a retrieval folder")
    if metric not in allowed:
        raise UsageError(f"--metric {quote(str(metric), 30)}, expected {' or '.join(name for name in allowed if name)} for this file")
    labelled = [row for row in data.rows if isinstance(row, LabelledPair)]
    if labelled:
        make_binary_labels(labelled)


def _on_corpus(
    names: tuple[str, str], path: Path, *, metric: str, split: str, resamples: int | None, compute: Compute
) -> tuple[tuple[PromptedEncoder, PromptedEncoder], Comparison, dict[str, str]]:
    from munjang.cli.load_model import load_for_search
    from munjang.data.retrieval import read_retrieval
    from munjang.evaluate.bootstrap import RESAMPLES
    from munjang.evaluate.compare import compare_retrieval

    task = read_retrieval(path, split=split)
    tell(task)
    (ask_a, a), (ask_b, b) = (load_for_search(name, compute=compute) for name in names)
    found = compare_retrieval(a, b, task, query_encoders=(ask_a, ask_b), metric=metric, resamples=resamples or RESAMPLES)
    return (a, b), found, {"file": task.source, "layout": task.layout}


def _is_corpus(file: str) -> bool:
    """Whether a path is a retrieval set: a folder of one, or a JSON file that is one object (SQuAD) and not a list of rows."""
    from munjang.data.files import get_file_kind, read_first_bytes
    from munjang.data.retrieval import is_beir, is_cranfield

    path = Path(file)
    if path.is_dir():
        return is_beir(path) or is_cranfield(path)
    return file != "-" and get_file_kind(path) == "json" and read_first_bytes(path, 64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _names(models: tuple[PromptedEncoder, PromptedEncoder], given: tuple[str, str]) -> tuple[str, str]:
    """The models' names, or what the caller wrote where two folders have one name."""
    first, second = (model.name for model in models)
    return (first, second) if first != second else given


def _print(found: Comparison, names: tuple[str, str]) -> None:
    a, b = names
    print_table(("model", f"{found.metric} x 100"), [(a, hundred(found.a)), (b, hundred(found.b))], right=(f"{found.metric} x 100",))
    print(
        f"difference {100 * found.difference:+.2f}, 95 % from {interval_text(found.ci95)}, p = {p_text(found.p)}, {count(found.n, 'row')}"
    )
    if found.winner == "neither":
        print("no difference beyond chance (p ≥ 0.05)")
    else:
        print(f"{a if found.winner == 'a' else b} is better beyond chance")
