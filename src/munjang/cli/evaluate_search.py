"""`munjang evaluate retrieval` and `rerank`: a corpus with judged queries, or a TREC run → how good the ranking is.

A corpus is a BEIR folder, the Cranfield folder or SQuAD JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.data_options import ResamplesOption, SplitOption, tell
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, OutputOption, examples
from munjang.cli.scores import check_output, deliver, print_rerank, print_retrieval
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.data.rows import RetrievalTask
    from munjang.types import Scorer

CorpusArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A BEIR folder, the Cranfield folder or a SQuAD JSON file (KorQuAD, TyDiQA).")
]
CutsOption = Annotated[list[int] | None, typer.Option("--top", "-k", min=1, help="Score the first k documents; may be repeated.")]


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
    model: ModelOption = None,
    run: Annotated[Path | None, typer.Option(help="Score this TREC run instead of searching with a model.")] = None,
    save_run: Annotated[Path | None, typer.Option(help="Write the model's results as a TREC run.")] = None,
    k: CutsOption = None,
    split: SplitOption = "test",
    resamples: ResamplesOption = 10_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval on a corpus with judged queries.

    nDCG, MRR, MAP, recall and precision at k.
    DIR is a BEIR folder, the Cranfield folder or a SQuAD JSON file. Search is exact; queries and documents get the model's own prompts.
    """
    from munjang.cli.load_model import load_for_search
    from munjang.data.retrieval import read_run, write_run
    from munjang.evaluate.retrieval import DEFAULT_CUTS, evaluate_retrieval, score_run

    if run is not None and (model is not None or save_run is not None):
        raise UsageError("--run scores an existing run and excludes --model and --save-run")
    check_output(output)
    check_output(save_run)
    cuts = k or DEFAULT_CUTS
    task = _task(corpus, split=split, judged=run is not None)
    tell(task)
    if run is not None:
        name, found = run.name, score_run(read_run(run), task.judgements, documents=len(task.corpus), cuts=cuts, resamples=resamples)
    else:
        queries, documents = load_for_search(model, compute=compute)
        name, found = queries.name, evaluate_retrieval(documents, task, query_encoder=queries, cuts=cuts, resamples=resamples)
    if save_run is not None:
        write_run(save_run, found.run)
    source = {"run" if run is not None else "model": name, "file": task.source, "layout": task.layout}
    deliver({**found.to_json(), **source}, output=output, as_json=as_json)
    if not as_json:
        print_retrieval(found)


def rerank(
    corpus: CorpusArgument,
    model: ModelOption = None,
    run: Annotated[Path | None, typer.Option(help="The first run, in TREC's format.")] = None,
    first: Annotated[str | None, typer.Option(help="The model that makes the first run, instead of --run.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="Documents to re-rank per query.")] = 100,
    k: CutsOption = None,
    split: SplitOption = "test",
    resamples: ResamplesOption = 10_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Re-rank a first run with a model.

    Reports every metric before and after, and whether the gain is significant.
    The order is by the score of a cross-encoder, or by cosine of a sentence encoder; documents below --depth keep their places.
    """
    from munjang.cli.load_model import load_for_search, load_other_model, load_scorer
    from munjang.data.retrieval import read_run
    from munjang.data.rows import Run
    from munjang.evaluate.rerank import evaluate_rerank, make_cosine_scorer
    from munjang.evaluate.retrieval import DEFAULT_CUTS, search_task

    if (run is None) == (first is None):
        raise UsageError("a first run is needed: --run FILE (TREC) or --first MODEL, one of them")
    check_output(output)
    cuts = k or DEFAULT_CUTS
    task = _task(corpus, split=split, judged=False)
    tell(task)
    before: Run
    if run is not None:
        before = read_run(run)
    else:
        ranker = load_other_model(first, compute=compute)  # --pooling is the other model's
        queries, documents = ranker.for_queries(progress=True), ranker.for_documents(progress=True)
        before = search_task(documents, task, k=max(depth, *cuts), query_encoder=queries)
    scorer: Scorer
    cross = load_scorer(model, compute=compute)
    if cross is not None:
        name, scorer = cross.name, cross
    else:
        queries, documents = load_for_search(model, compute=compute)
        name, scorer = queries.name, make_cosine_scorer(documents, task, before, depth=depth, query_encoder=queries)
    found = evaluate_rerank(scorer, task, before, depth=depth, cuts=cuts, resamples=resamples)
    source = {"model": name, "first": str(run.name if run else first), "file": task.source, "layout": task.layout}
    deliver({**found.to_json(), **source}, output=output, as_json=as_json)
    if not as_json:
        print_rerank(found)


def _task(path: Path, *, split: str, judged: bool) -> RetrievalTask:
    """The task at a path; judgements alone suffice where the run is already there."""
    from munjang.data.files import get_file_kind
    from munjang.data.retrieval import read_qrels, read_retrieval
    from munjang.data.rows import RetrievalTask

    if judged and not path.is_dir() and get_file_kind(path) != "json":
        return RetrievalTask({}, {}, read_qrels(path), path.name, "TREC judgements")
    return read_retrieval(path, split=split)
