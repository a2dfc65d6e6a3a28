"""`munjang compare`: two models on one data set → the difference, its interval, and how likely it is by chance (paired bootstrap)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from munjang.cli.data_options import DataOptions, FileArgument, LabelOption, PositiveOption, ScaleOption, facts_of, tell
from munjang.cli.load_model import ProgressScorer, load_for_search, load_judge, load_scorer
from munjang.cli.options import Chosen, ComparedModelArgument, ComputeOption, Takes, examples, new_app
from munjang.cli.scores import Delivery, format_percent, interval_text, p_text
from munjang.cli.show import print_table
from munjang.data.files import get_file_kind, read_first_bytes
from munjang.data.read import AnyDataset, read_any
from munjang.data.retrieval import is_beir, is_cranfield, read_retrieval
from munjang.data.rows import DIFFERENT, SAME, LabelledPair, ScoredPair
from munjang.errors import InputError, UsageError, quote
from munjang.evaluate.compare import Against, Comparison, compare_nli, compare_pairs, compare_retrieval, compare_sts
from munjang.evaluate.pairs import make_binary_labels
from munjang.options import default_of
from munjang.types import DEFAULT_COMPUTE, Compute
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.models.prompted_encoder import PromptedEncoder

    Judge: TypeAlias = PromptedEncoder | ProgressScorer

METRICS = (
    "spearman (default) or pearson for scored pairs; ap for same/different pairs; accuracy for classes; "
    f"ndcg@k, mrr@k, map@k, recall@k or precision@k for retrieval (default: {default_of(compare_retrieval, 'metric')})."
)
RESAMPLES_IN_WORDS = f"{default_of(compare_sts, 'resamples'):,}, or {default_of(compare_pairs, 'resamples'):,} for same/different pairs"

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
    *,
    metric: Annotated[str | None, typer.Option(help=METRICS)] = None,
    options: Annotated[Chosen, Takes(compare_sts, only=["resamples"], worded={"resamples": RESAMPLES_IN_WORDS})],
    scale: ScaleOption = None,
    label: LabelOption = None,
    positive: PositiveOption = None,
    reading: DataOptions,
    compute: ComputeOption = DEFAULT_COMPUTE,
    delivery: Delivery,
) -> None:
    """Compare two models on a data set, with a significance test.

    Both are scored on the same resampled rows. Reads scored pairs, same/different pairs and retrieval sets. On pairs either model may be a
    sentence encoder (its cosine), a cross-encoder or a classifier of pairs; two classifiers are compared on classes, such as those of NLI.
    """
    delivery.check()
    models: tuple[Judge, Judge]
    given = {name: value for name, value in options.items() if value is not None}
    if _is_corpus(file):
        given |= {} if metric is None else {"metric": metric}
        models, result, facts = _compare_on_corpus((a, b), Path(file), given, split=reading.split, compute=compute)
    else:
        data = reading.read(file, read_any, scale=scale, labels=label)
        _check(data, metric)
        models, result = _compare_on_rows((a, b), data, metric, given, compute=compute, positive=positive)
        facts = facts_of(data)
    names = _name_models(models, (a, b))
    delivery.give({**result.to_json(), "model_a": names[0], "model_b": names[1], **facts}, lambda: _print(result, names))


def _compare_on_rows(
    names: tuple[str, str], data: AnyDataset, metric: str | None, options: Chosen, *, compute: Compute, positive: str | None
) -> tuple[tuple[Judge, Judge], Comparison]:
    labelled: list[LabelledPair] = [row for row in data.rows if isinstance(row, LabelledPair)]
    if labelled and _wants_accuracy(labelled, metric):
        first, second = (_load_classifier(name, compute=compute) for name in names)
        labels = first.model.labels, second.model.labels
        return (first, second), compare_nli(first, second, labelled, labels=labels, **options)
    one, other = (load_judge(name, compute=compute, positive=positive) for name in names)
    if labelled:
        return (one, other), compare_pairs(one, other, labelled, **options)
    scored: list[ScoredPair] = [row for row in data.rows if isinstance(row, ScoredPair)]
    against: Against = "pearson" if metric == "pearson" else "spearman"
    return (one, other), compare_sts(one, other, scored, against=against, **options)


def _wants_accuracy(rows: Sequence[LabelledPair], metric: str | None) -> bool:
    """Whether classes are compared: asked for, or since the labels are not those of same and different."""
    return metric == "accuracy" or (metric is None and any(row.label not in (SAME, DIFFERENT) for row in rows))


def _load_classifier(name: str, *, compute: Compute) -> ProgressScorer:
    scorer = load_scorer(name, compute=compute)
    if scorer is None or len(scorer.model.labels) < 2:
        raise UsageError(
            f"{quote(name)} gives one score per pair and no labels, and these pairs have classes\n  give a classifier of pairs"
        )
    return scorer


def _check(data: AnyDataset, metric: str | None) -> None:
    """Refuse what cannot be compared before a model is loaded."""
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


def _compare_on_corpus(
    names: tuple[str, str], path: Path, options: Chosen, *, split: str, compute: Compute
) -> tuple[tuple[PromptedEncoder, PromptedEncoder], Comparison, dict[str, str]]:
    task = read_retrieval(path, split=split)
    tell(task)
    (ask_a, a), (ask_b, b) = (load_for_search(name, compute=compute) for name in names)
    result = compare_retrieval(a, b, task, query_encoders=(ask_a, ask_b), **options)
    return (a, b), result, {"file": task.source, "layout": task.layout}


def _is_corpus(file: str) -> bool:
    """Whether a path is a retrieval set: a folder of one, or a JSON file that is one object (SQuAD) and not a list of rows."""
    path = Path(file)
    if path.is_dir():
        return is_beir(path) or is_cranfield(path)
    return file != "-" and get_file_kind(path) == "json" and read_first_bytes(path, 64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _name_models(models: tuple[Judge, Judge], given: tuple[str, str]) -> tuple[str, str]:
    """The models' names, or what the caller wrote where two folders have one name."""
    first, second = (model.name for model in models)
    return (first, second) if first != second else given


def _print(found: Comparison, names: tuple[str, str]) -> None:
    a, b = names
    print_table(
        ("model", f"{found.metric} x 100"), [(a, format_percent(found.a)), (b, format_percent(found.b))], right=(f"{found.metric} x 100",)
    )
    print(
        f"difference {100 * found.difference:+.2f}, 95 % from {interval_text(found.ci95)}, p = {p_text(found.p)}, {count(found.n, 'row')}"
    )
    if found.winner == "neither":
        print("no difference beyond chance (p ≥ 0.05)")
    else:
        print(f"{a if found.winner == 'a' else b} is better beyond chance")
