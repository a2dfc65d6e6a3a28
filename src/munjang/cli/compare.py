"""`munjang compare`: two models on one data set → the difference, its interval, and how likely it is by chance (paired bootstrap)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from munjang.cli.data_options import (
    ColumnOption,
    FileArgument,
    LabelOption,
    LayoutOption,
    PositiveOption,
    ScaleOption,
    SkipBadOption,
    SplitOption,
    facts_of,
    located,
    read_options,
    tell,
)
from munjang.cli.options import ComputeOption, JsonOption, OutputOption, examples, new_app
from munjang.cli.scores import check_output, deliver, hundred, interval_text, p_text
from munjang.cli.show import print_table
from munjang.errors import InputError, UsageError, quote
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.cli.load_model import ProgressScorer
    from munjang.data.read import AnyDataset
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.compare import Against, Comparison
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.types import Compute

    Judge: TypeAlias = PromptedEncoder | ProgressScorer

app = new_app()


@app.command(
    epilog=examples(
        "munjang compare all-MiniLM-L6-v2 my-model sts-test.tsv", "munjang compare old-model new-model scifact --metric recall@100"
    )
)
def compare(
    a: Annotated[str, typer.Argument(metavar="MODEL", help="A model's name or folder.")],
    b: Annotated[str, typer.Argument(metavar="MODEL", help="A second model's name or folder.")],
    file: FileArgument,
    metric: Annotated[
        str | None,
        typer.Option(
            help="spearman (default) or pearson for scored pairs; ap for same/different; accuracy for classes; ndcg@10, … for retrieval."
        ),
    ] = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    scale: ScaleOption = None,
    label: LabelOption = None,
    positive: PositiveOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: Annotated[int | None, typer.Option(min=1, help="Bootstrap resamples; 10,000, or 1,000 for same/different pairs.")] = None,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two models on a data set, with a significance test.

    Both are scored on the same resampled rows. Reads scored pairs, same/different pairs and retrieval sets. On pairs either model may be a
    sentence encoder (its cosine), a cross-encoder or a classifier of pairs; two classifiers are compared on classes, such as those of NLI.
    """
    from munjang.data.read import read_any

    check_output(output)
    models: tuple[Judge, Judge]
    if _is_corpus(file):
        models, found, facts = _on_corpus((a, b), Path(file), metric=metric or "ndcg@10", split=split, resamples=resamples, compute=compute)
    else:
        with located(file, split=split) as path:
            data = read_any(path, read_options(layout=layout, columns=column, scale=scale, labels=label, skip_bad=skip_bad))
        tell(data)
        _check(data, metric)
        models, found = _on_rows((a, b), data, metric, resamples, compute=compute, positive=positive)
        facts = facts_of(data)
    names = _names(models, (a, b))
    deliver({**found.to_json(), "model_a": names[0], "model_b": names[1], **facts}, output=output, as_json=as_json)
    if not as_json:
        _print(found, names)


def _on_rows(
    names: tuple[str, str], data: AnyDataset, metric: str | None, resamples: int | None, *, compute: Compute, positive: str | None
) -> tuple[tuple[Judge, Judge], Comparison]:
    from munjang.cli.load_model import load_judge
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.bootstrap import RESAMPLES
    from munjang.evaluate.compare import compare_nli, compare_pairs, compare_sts

    labelled: list[LabelledPair] = [row for row in data.rows if isinstance(row, LabelledPair)]
    if labelled and _wants_accuracy(labelled, metric):
        first, second = (_load_classifier(name, compute=compute) for name in names)
        labels = first.model.labels, second.model.labels
        return (first, second), compare_nli(first, second, labelled, labels=labels, resamples=resamples or RESAMPLES)
    one, other = (load_judge(name, compute=compute, positive=positive) for name in names)
    if labelled:
        return (one, other), compare_pairs(one, other, labelled, resamples=resamples or 1_000)
    scored: list[ScoredPair] = [row for row in data.rows if isinstance(row, ScoredPair)]
    against: Against = "pearson" if metric == "pearson" else "spearman"
    return (one, other), compare_sts(one, other, scored, against=against, resamples=resamples or RESAMPLES)


def _wants_accuracy(rows: Sequence[LabelledPair], metric: str | None) -> bool:
    """Whether classes are compared: asked for, or since the labels are not those of same and different."""
    from munjang.data.rows import DIFFERENT, SAME

    return metric == "accuracy" or (metric is None and any(row.label not in (SAME, DIFFERENT) for row in rows))


def _load_classifier(name: str, *, compute: Compute) -> ProgressScorer:
    from munjang.cli.load_model import load_scorer

    scorer = load_scorer(name, compute=compute)
    if scorer is None or len(scorer.model.labels) < 2:
        raise UsageError(
            f"{quote(name)} gives one score per pair and no labels, and these pairs have classes\n  give a classifier of pairs"
        )
    return scorer


def _check(data: AnyDataset, metric: str | None) -> None:
    """Refuse what cannot be compared before a model is loaded."""
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.pairs import make_binary_labels

    known = {ScoredPair: (None, "spearman", "pearson"), LabelledPair: (None, "ap", "accuracy")}
    if not data.rows:
        raise InputError(f"{data.source}: no rows, expected some to compare on")
    allowed = known.get(type(data.rows[0]))
    if allowed is None:
        raise InputError(f"{data.source}: read as {data.layout}, expected scored pairs, labelled pairs or a retrieval folder")
    if metric not in allowed:
        raise UsageError(f"--metric {quote(str(metric), 30)}, expected {' or '.join(name for name in allowed if name)} for this file")
    labelled = [row for row in data.rows if isinstance(row, LabelledPair)]
    if labelled and not _wants_accuracy(labelled, metric):
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


def _names(models: tuple[Judge, Judge], given: tuple[str, str]) -> tuple[str, str]:
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
