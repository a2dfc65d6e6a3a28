"""`munjang evaluate retrieval` and `rerank`: a corpus with judged queries, or a TREC run → how good the ranking is.

A corpus is a BEIR folder, the Cranfield folder or SQuAD JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.data_options import DEFAULT_SPLIT, SplitOption, tell
from munjang.cli.load_model import load_for_search, load_other_model, load_scorer
from munjang.cli.options import Chosen, EncoderChoice, Takes, examples
from munjang.cli.scores import Delivery, check_output, print_rerank, print_retrieval
from munjang.data.files import get_file_kind
from munjang.data.retrieval import read_qrels, read_retrieval, read_run, write_run
from munjang.data.rows import RetrievalTask, Run
from munjang.errors import UsageError
from munjang.evaluate.rerank import evaluate_rerank, make_cosine_scorer
from munjang.evaluate.retrieval import evaluate_retrieval, score_run, search_task
from munjang.types import Scorer

CorpusArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A BEIR folder, the Cranfield folder or a SQuAD JSON file (KorQuAD, TyDiQA).")
]


def add_to(app: typer.Typer) -> None:
    """Register both commands."""
    app.command(
        epilog=examples(
            "munjang evaluate retrieval scifact --model my-model -k 10 -k 100",
            "munjang evaluate retrieval scifact --save-run mine.trec",
            "munjang evaluate retrieval qrels.txt --run bm25.trec",
        )
    )(retrieval)
    app.command(
        epilog=examples(
            "munjang evaluate rerank scifact --run bm25.trec --model my-model",
            "munjang evaluate rerank scifact --first small-model --model my-cross-encoder",
        )
    )(rerank)


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
