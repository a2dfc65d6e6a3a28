"""`munjang evaluate`: a model and a labelled data set → scores with intervals. One sub-command per task.

A command reads the file, hands the rows to `evaluate/`, and shows what comes back; no number is computed here. Retrieval and re-ranking
read a corpus with judged queries (a BEIR folder, the Cranfield folder or SQuAD JSON), or score a TREC run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.data_options import (
    DEFAULT_SPLIT,
    DataOptions,
    FileArgument,
    LabelOption,
    PositiveOption,
    ScaleOption,
    SplitOption,
    TranslationsArgument,
    facts_of,
    read_translations,
    tell,
)
from munjang.cli.load_model import load_for_search, load_judge, load_other_model, load_scorer
from munjang.cli.options import Chosen, ClassifierOption, ComputeOption, EncoderChoice, Takes, examples, new_app
from munjang.cli.scores import Delivery, check_output, print_nli, print_pairs, print_rerank, print_retrieval, print_scores, print_sts
from munjang.cli.show import print_facts
from munjang.data.files import get_file_kind, read_text
from munjang.data.read import read_labelled_pairs, read_labelled_texts, read_scored_pairs, read_triplets
from munjang.data.retrieval import read_qrels, read_retrieval, read_run, write_run
from munjang.data.rows import RetrievalTask, Run
from munjang.errors import InputError, UsageError
from munjang.evaluate.clustering import evaluate_clustering
from munjang.evaluate.nli import evaluate_nli, score_nli
from munjang.evaluate.pairs import evaluate_pairs, make_binary_labels
from munjang.evaluate.rerank import evaluate_rerank, make_cosine_scorer
from munjang.evaluate.retrieval import evaluate_retrieval, score_run, search_task
from munjang.evaluate.sts import evaluate_sts, evaluate_sts_scores
from munjang.evaluate.translation import evaluate_mse, evaluate_translation
from munjang.evaluate.triplets import evaluate_triplets
from munjang.types import DEFAULT_COMPUTE, Scorer
from munjang.wording import count

TASKS = ("sts", "pairs", "nli", "triplets", "retrieval", "rerank", "clustering", "translation", "mse")
NEEDS_CLASSIFIER = (
    "a sentence encoder gives vectors, not labels: nli needs a cross-encoder or a pair classifier with a label for each class (--model)\n"
    '  train one with kind = "cross" or keep_head = true in a recipe (munjang train), or score labels predicted elsewhere with '
    "--predictions FILE"
)

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
    *,
    chosen_model: EncoderChoice,
    options: Annotated[Chosen, Takes(evaluate_sts)],
    same_at: Annotated[
        float | None, typer.Option(help="Also report the best F1 at separating pairs with at least this score (KLUE-STS: 3).")
    ] = None,
    scale: ScaleOption = None,
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Correlate similarities with human scores.

    Reports cosine, dot product and two distances, each by Pearson and Spearman; cosine per genre if the file has genres; and the worst
    pairs. For a cross-encoder, Pearson and Spearman of its score.
    """
    delivery.check()
    data = reading.read(file, read_scored_pairs, scale=scale)
    low, high = data.scale or (0.0, 1.0)
    cut = None if same_at is None else (same_at - low) / (high - low)
    scorer = load_scorer(chosen_model.model, compute=chosen_model.compute)
    if scorer is not None:
        correlations = evaluate_sts_scores(scorer, data.rows, resamples=options["resamples"])
        body = {**correlations.to_json(), "model": scorer.name, **facts_of(data)}
        delivery.give(body, lambda: print_scores(correlations.scores, correlations.ci95))
        return
    encoder = chosen_model.load()
    result = evaluate_sts(encoder, data.rows, binary_at=cut, **options)
    delivery.give({**result.to_json(), "model": encoder.name, **facts_of(data)}, lambda: print_sts(result, (low, high)))


@app.command(epilog=examples("munjang evaluate pairs test.tsv", "munjang evaluate pairs mine.csv --label yes=same --label no=different"))
def pairs(
    file: FileArgument,
    *,
    chosen_model: EncoderChoice,
    options: Annotated[Chosen, Takes(evaluate_pairs)],
    label: LabelOption = None,
    positive: PositiveOption = None,
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Separate pairs with the same meaning from others.

    Reports accuracy, F1, average precision and the best threshold: of a sentence encoder by its similarities, of a cross-encoder by its
    score, of a classifier of pairs by the probability of one label.
    The threshold is chosen on the same rows, which flatters it; `munjang calibrate` measures it on held-out rows.
    """
    delivery.check()
    data = reading.read(file, read_labelled_pairs, labels=label)
    make_binary_labels(data.rows)  # refuses other labels before the model works
    judge = load_judge(chosen_model.model, compute=chosen_model.compute, positive=positive)
    result = evaluate_pairs(judge, data.rows, **options)
    delivery.give({**result.to_json(), "model": judge.name, **facts_of(data)}, lambda: print_pairs(result))


@app.command(
    epilog=examples(
        "munjang evaluate nli dev.tsv --model my-cross-encoder",
        "munjang evaluate nli dev.tsv --model theirs --labels contradiction,entailment,neutral",
        "munjang evaluate nli dev.tsv --predictions predicted.txt",
    )
)
def nli(
    file: FileArgument,
    *,
    predictions: Annotated[str | None, typer.Option(help="Labels predicted elsewhere, one per line, in the file's order.")] = None,
    model: ClassifierOption = None,
    compute: ComputeOption = DEFAULT_COMPUTE,
    labels: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The model's labels in order, if its folder does not name them.")
    ] = None,
    options: Annotated[Chosen, Takes(evaluate_nli)],
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Score predicted inference labels.

    Reports accuracy, macro F1 and the confusion matrix. A cross-encoder or a pair classifier predicts them, or a file holds them.
    Rows without a gold label ("-") are left out and have no line in the predictions.
    """
    if (predictions is None) == (model is None):
        raise UsageError(NEEDS_CLASSIFIER if model is None else "--model and --predictions together, expected one of them")
    delivery.check()
    data = reading.read(file, read_labelled_pairs)
    named: dict[str, str] = {}
    if predictions is not None:
        predicted = _read_predictions(predictions, len(data), data.source)
        result = score_nli(predicted, [row.label for row in data.rows], **options)
    else:
        scorer = load_scorer(model, compute=compute)
        if scorer is None:
            raise UsageError(NEEDS_CLASSIFIER)
        named = {"model": scorer.name}
        names = tuple(name.strip() for name in labels.split(",")) if labels else scorer.model.labels
        result = evaluate_nli(scorer, data.rows, labels=names, **options)
    delivery.give({**result.to_json(), **named, **facts_of(data)}, lambda: print_nli(result))


def _read_predictions(file: str, rows: int, source: str) -> list[str]:
    predicted = [line.strip() for line in read_text(file).strip().splitlines()]
    if len(predicted) != rows or not predicted:
        raise InputError(f"{file}: {count(len(predicted), 'prediction')}, expected {rows:,}, one for each labelled row of {source}")
    return predicted


@app.command(epilog=examples("munjang evaluate triplets triplets.jsonl --model my-model"))
def triplets(
    file: FileArgument,
    *,
    chosen_model: EncoderChoice,
    options: Annotated[Chosen, Takes(evaluate_triplets)],
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Count correctly ordered triplets.

    A triplet is correct if the positive is closer to the anchor than the negative.
    """
    delivery.check()
    data = reading.read(file, read_triplets)
    encoder = chosen_model.load()
    result = evaluate_triplets(encoder, data.rows, **options)
    delivery.give({**result.to_json(), "model": encoder.name, **facts_of(data)}, lambda: print_scores(result.scores, result.ci95))


@app.command(epilog=examples("munjang evaluate clustering bills.tsv --seeds 5"))
def clustering(
    file: FileArgument,
    *,
    chosen_model: EncoderChoice,
    options: Annotated[Chosen, Takes(evaluate_clustering)],
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Recover known classes with k-means.

    Reports V-measure, ARI, NMI and purity against the classes in the file.
    """
    delivery.check()
    data = reading.read(file, read_labelled_texts)
    encoder = chosen_model.load()
    result = evaluate_clustering(encoder, data.rows, **options)
    scores = {**result.scores, "v_measure_sd": result.v_measure_sd}
    delivery.give({**result.to_json(), "model": encoder.name, **facts_of(data)}, lambda: print_scores(scores, {}))


@app.command(epilog=examples("munjang evaluate translation pairs.tsv", "munjang evaluate translation news.ko news.en"))
def translation(
    file: FileArgument,
    other: TranslationsArgument = None,
    *,
    chosen_model: EncoderChoice,
    options: Annotated[Chosen, Takes(evaluate_translation)],
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Find each sentence's translation.

    Reports how often a sentence finds its translation among all, in both directions.
    """
    delivery.check()
    data = read_translations(file, other, reading)
    encoder = chosen_model.load()
    result = evaluate_translation(encoder, data.rows, **options)
    scores = {name: getattr(result, name) for name in ("src2trg_accuracy", "trg2src_accuracy", "mean_accuracy")}
    delivery.give({**result.to_json(), "model": encoder.name, **facts_of(data)}, lambda: print_scores(scores, result.ci95))


@app.command(
    epilog=examples(
        "munjang evaluate mse pairs.tsv --teacher big-model --model my-student",
        "munjang evaluate mse news.en news.ko --teacher english-model --model my-student",
    )
)
def mse(
    file: FileArgument,
    teacher: Annotated[str, typer.Option(help="The teacher's name or folder.")],
    other: TranslationsArgument = None,
    *,
    chosen_model: EncoderChoice,
    reading: DataOptions,
    delivery: Delivery,
) -> None:
    """Measure how closely a student reproduces a teacher's vectors.

    The mean squared error between the teacher's vector of the first sentence and the student's vectors of the first and of the second
    (its translation). 0 is perfect; negative_mse is −100 times the second, as sentence-transformers writes it.
    """
    delivery.check()
    data = read_translations(file, other, reading)
    known, learnt = load_other_model(teacher, compute=chosen_model.compute).with_prompt(progress=True), chosen_model.load()
    if known.dimension != learnt.dimension:
        raise UsageError(
            f"{known.name} has {known.dimension} dimensions and {learnt.name} {learnt.dimension}, expected the same\n"
            "  only a student that learnt its teacher's own vectors can be compared with it"
        )
    result = evaluate_mse(known, learnt, data.rows)
    rows = (("source", result.source_mse), ("target", result.target_mse), ("negative_mse", result.negative_mse))
    facts = [("pairs", f"{result.n:,}"), *((name, f"{value:.6g}") for name, value in rows)]
    body = {**result.to_json(), "teacher": known.name, "model": learnt.name, **facts_of(data)}
    delivery.give(body, lambda: print_facts(facts))


CorpusArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A BEIR folder, the Cranfield folder or a SQuAD JSON file (KorQuAD, TyDiQA).")
]


@app.command(
    epilog=examples(
        "munjang evaluate retrieval scifact --model my-model -k 10 -k 100",
        "munjang evaluate retrieval scifact --save-run mine.trec",
        "munjang evaluate retrieval qrels.txt --run bm25.trec",
    )
)
def retrieval(
    corpus: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="As for rerank; with --run also a file of TREC judgements.")],
    *,
    chosen_model: EncoderChoice,
    run: Annotated[Path | None, typer.Option(help="Score this TREC run instead of searching with a model.")] = None,
    save_run: Annotated[Path | None, typer.Option(help="Write the model's results as a TREC run.")] = None,
    options: Annotated[Chosen, Takes(evaluate_retrieval)],
    split: SplitOption = DEFAULT_SPLIT,
    delivery: Delivery,
) -> None:
    """Measure retrieval on a corpus with judged queries.

    nDCG, MRR, MAP, recall and precision at k.
    DIR is a BEIR folder, the Cranfield folder or a SQuAD JSON file. Search is exact; queries and documents get the model's own prompts.
    """
    if run is not None and (chosen_model.model is not None or save_run is not None):
        raise UsageError("--run scores an existing run and excludes --model and --save-run")
    delivery.check()
    check_output(save_run)
    task = _read_task(corpus, split=split, judged=run is not None)
    tell(task)
    if run is not None:
        name, result = run.name, score_run(read_run(run), task.judgements, documents=len(task.corpus), **options)
    else:
        queries, documents = load_for_search(chosen_model.model, compute=chosen_model.compute)
        name, result = queries.name, evaluate_retrieval(documents, task, query_encoder=queries, **options)
    if save_run is not None:
        write_run(save_run, result.run)
    source = {"run" if run is not None else "model": name, "file": task.source, "layout": task.layout}
    delivery.give({**result.to_json(), **source}, lambda: print_retrieval(result))


@app.command(
    epilog=examples(
        "munjang evaluate rerank scifact --run bm25.trec --model my-model",
        "munjang evaluate rerank scifact --first small-model --model my-cross-encoder",
    )
)
def rerank(
    corpus: CorpusArgument,
    *,
    chosen_model: EncoderChoice,
    run: Annotated[Path | None, typer.Option(help="The first run, in TREC's format.")] = None,
    first: Annotated[str | None, typer.Option(help="The model that makes the first run, instead of --run.")] = None,
    options: Annotated[Chosen, Takes(evaluate_rerank)],
    split: SplitOption = DEFAULT_SPLIT,
    delivery: Delivery,
) -> None:
    """Re-rank a first run with a model.

    Reports every metric before and after, and whether the gain is significant.
    The order is by the score of a cross-encoder, or by cosine of a sentence encoder; documents below --depth keep their places.
    """
    if (run is None) == (first is None):
        raise UsageError("a first run is needed: --run FILE (TREC) or --first MODEL, one of them")
    delivery.check()
    depth, model, compute = options["depth"], chosen_model.model, chosen_model.compute
    task = _read_task(corpus, split=split, judged=False)
    tell(task)
    before: Run
    if run is not None:
        before = read_run(run)
    else:
        ranker = load_other_model(first, compute=compute)  # --pooling is the other model's
        queries, documents = ranker.for_queries(progress=True), ranker.for_documents(progress=True)
        before = search_task(documents, task, k=max(depth, *options["cuts"]), query_encoder=queries)
    scorer: Scorer
    cross = load_scorer(model, compute=compute)
    if cross is not None:
        name, scorer = cross.name, cross
    else:
        queries, documents = load_for_search(model, compute=compute)
        name, scorer = queries.name, make_cosine_scorer(documents, task, before, depth=depth, query_encoder=queries)
    result = evaluate_rerank(scorer, task, before, **options)
    source = {"model": name, "first": str(run.name if run else first), "file": task.source, "layout": task.layout}
    delivery.give({**result.to_json(), **source}, lambda: print_rerank(result))


def _read_task(path: Path, *, split: str, judged: bool) -> RetrievalTask:
    """The task at a path; judgements alone suffice where the run is already there."""
    if judged and not path.is_dir() and get_file_kind(path) != "json":
        return RetrievalTask({}, {}, read_qrels(path), path.name, "TREC judgements")
    return read_retrieval(path, split=split)
