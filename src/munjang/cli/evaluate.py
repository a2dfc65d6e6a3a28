"""`munjang evaluate`: a model and a labelled data set → scores with intervals. One sub-command per task.

The tasks over rows are here, in `evaluate_nli.py` and `evaluate_mse.py`, those over a corpus in `evaluate_search.py`. A command reads the
file, hands the rows to `evaluate/`, and shows what comes back; no number is computed here.
"""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli import evaluate_mse, evaluate_nli, evaluate_search
from munjang.cli.data_options import (
    ColumnOption,
    FileArgument,
    LabelOption,
    LayoutOption,
    PositiveOption,
    ResamplesOption,
    ScaleOption,
    SkipBadOption,
    SplitOption,
    TranslationsArgument,
    facts_of,
    located,
    read_options,
    read_translations,
    tell,
)
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, OutputOption, examples, new_app
from munjang.cli.scores import check_output, deliver, print_pairs, print_scores, print_sts
from munjang.errors import UsageError

TASKS = ("sts", "pairs", "nli", "triplets", "retrieval", "rerank", "clustering", "translation", "mse")

app = new_app()


@app.callback(
    invoke_without_command=True,
    epilog=examples("munjang evaluate sts sts-test.tsv", "munjang evaluate retrieval beir-folder --model my-model --json"),
)
def evaluate(context: typer.Context) -> None:
    """Score a model on a labelled data set.

    Scores are shown times 100, with 95 % bootstrap intervals; --json contains the raw values.
    """
    if context.invoked_subcommand is None:
        raise UsageError(f"no task named, expected one of {', '.join(TASKS)}\n  munjang evaluate --help describes them")


@app.command(
    epilog=examples(
        "munjang evaluate sts sts-test.tsv --model my-model",
        "munjang evaluate sts pairs.csv --column a=left --column b=right --column score=rating --scale 1 7",
    )
)
def sts(
    file: FileArgument,
    model: ModelOption = None,
    worst: Annotated[int, typer.Option(min=0, help="Number of worst pairs to show.")] = 10,
    same_at: Annotated[
        float | None, typer.Option(help="Also report the best F1 at separating pairs with at least this score (KLUE-STS: 3).")
    ] = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    scale: ScaleOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: ResamplesOption = 10_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Correlate similarities with human scores.

    Reports cosine, dot product and two distances, each by Pearson and Spearman; cosine per genre if the file has genres; and the worst
    pairs. For a cross-encoder, Pearson and Spearman of its score.
    """
    from munjang.cli.load_model import load_encoder, load_scorer
    from munjang.data.read import read_scored_pairs
    from munjang.evaluate.sts import evaluate_sts, evaluate_sts_scores

    check_output(output)
    with located(file, split=split) as path:
        data = read_scored_pairs(path, read_options(layout=layout, columns=column, scale=scale, skip_bad=skip_bad))
    tell(data)
    low, high = data.scale or (0.0, 1.0)
    cut = None if same_at is None else (same_at - low) / (high - low)
    scorer = load_scorer(model, compute=compute)
    if scorer is not None:
        correlations = evaluate_sts_scores(scorer, data.rows, resamples=resamples)
        deliver({**correlations.to_json(), "model": scorer.name, **facts_of(data)}, output=output, as_json=as_json)
        if not as_json:
            print_scores(correlations.scores, correlations.ci95)
        return
    encoder = load_encoder(model, compute=compute)
    found = evaluate_sts(encoder, data.rows, worst=worst, binary_at=cut, resamples=resamples)
    deliver({**found.to_json(), "model": encoder.name, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        print_sts(found, (low, high))


@app.command(epilog=examples("munjang evaluate pairs test.tsv", "munjang evaluate pairs mine.csv --label yes=same --label no=different"))
def pairs(
    file: FileArgument,
    model: ModelOption = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    label: LabelOption = None,
    positive: PositiveOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: ResamplesOption = 1_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Separate pairs with the same meaning from others.

    Reports accuracy, F1, average precision and the best threshold: of a sentence encoder by its similarities, of a cross-encoder by its
    score, of a classifier of pairs by the probability of one label.
    The threshold is chosen on the same rows, which flatters it; `munjang calibrate` measures it on held-out rows.
    """
    from munjang.cli.load_model import load_judge
    from munjang.data.read import read_labelled_pairs
    from munjang.evaluate.pairs import evaluate_pairs, make_binary_labels

    check_output(output)
    with located(file, split=split) as path:
        data = read_labelled_pairs(path, read_options(layout=layout, columns=column, labels=label, skip_bad=skip_bad))
    tell(data)
    make_binary_labels(data.rows)  # refuses other labels before the model works
    judge = load_judge(model, compute=compute, positive=positive)
    found = evaluate_pairs(judge, data.rows, resamples=resamples)
    deliver({**found.to_json(), "model": judge.name, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        print_pairs(found)


evaluate_nli.add_to(app)


@app.command(epilog=examples("munjang evaluate triplets triplets.jsonl --model my-model"))
def triplets(
    file: FileArgument,
    model: ModelOption = None,
    margin: Annotated[float, typer.Option(help="How much closer the positive must be.")] = 0.0,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: ResamplesOption = 10_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count correctly ordered triplets.

    A triplet is correct if the positive is closer to the anchor than the negative.
    """
    from munjang.cli.load_model import load_encoder
    from munjang.data.read import read_triplets
    from munjang.evaluate.triplets import evaluate_triplets

    check_output(output)
    with located(file, split=split) as path:
        data = read_triplets(path, read_options(layout=layout, columns=column, skip_bad=skip_bad))
    tell(data)
    encoder = load_encoder(model, compute=compute)
    found = evaluate_triplets(encoder, data.rows, margin=margin, resamples=resamples)
    deliver({**found.to_json(), "model": encoder.name, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        print_scores(found.scores, found.ci95)


@app.command(epilog=examples("munjang evaluate clustering bills.tsv --seeds 5"))
def clustering(
    file: FileArgument,
    model: ModelOption = None,
    k: Annotated[int | None, typer.Option("--clusters", "-k", min=1, help="Number of clusters. Default: the number of classes.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of k-means runs to average.")] = 3,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recover known classes with k-means.

    Reports V-measure, ARI, NMI and purity against the classes in the file.
    """
    from munjang.cli.load_model import load_encoder
    from munjang.data.read import read_labelled_texts
    from munjang.evaluate.clustering import evaluate_clustering

    check_output(output)
    with located(file, split=split) as path:
        data = read_labelled_texts(path, read_options(layout=layout, columns=column, skip_bad=skip_bad))
    tell(data)
    encoder = load_encoder(model, compute=compute)
    found = evaluate_clustering(encoder, data.rows, k=k, seeds=range(seeds))
    deliver({**found.to_json(), "model": encoder.name, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        print_scores({**found.scores, "v_measure_sd": found.v_measure_sd}, {})


@app.command(epilog=examples("munjang evaluate translation pairs.tsv", "munjang evaluate translation news.ko news.en"))
def translation(
    file: FileArgument,
    other: TranslationsArgument = None,
    model: ModelOption = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: ResamplesOption = 10_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find each sentence's translation.

    Reports how often a sentence finds its translation among all, in both directions.
    """
    from munjang.cli.load_model import load_encoder
    from munjang.evaluate.translation import evaluate_translation

    check_output(output)
    data = read_translations(file, other, split=split, options=read_options(layout=layout, columns=column, skip_bad=skip_bad))
    encoder = load_encoder(model, compute=compute)
    found = evaluate_translation(encoder, data.rows, resamples=resamples)
    deliver({**found.to_json(), "model": encoder.name, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        names = ("src2trg_accuracy", "trg2src_accuracy", "mean_accuracy")
        print_scores({name: getattr(found, name) for name in names}, found.ci95)


evaluate_mse.add_to(app)
evaluate_search.add_to(app)
