"""`munjang distill`: a teacher, a student, text → the student with the teacher's vectors, and a report before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.options import Chosen, JsonOption, LanguageOption, Takes, examples, new_app, report_language
from munjang.cli.show import emit, print_facts, print_table
from munjang.errors import UsageError
from munjang.train.distill.run import DISTILL_STAGE, STUDENT, DistillResult, run_distillation
from munjang.train.examples import DataSource, TeacherRecipe
from munjang.train.progress import Live
from munjang.train.recipe import ModelRecipe, StageRecipe, TopKeys

STAGE_KEYS = (
    "epochs",
    "steps",
    "batch_size",
    "accumulate",
    "length_window",
    "learning_rate",
    "warmup",
    "weight_decay",
    "evaluate_every",
    "patience",
)

app = new_app()


@app.command(
    epilog=examples(
        "munjang distill --teacher all-mpnet-base-v2 --student my-model --parallel en-ko.tsv.gz --columns en,ko -o models/ko",
        "munjang distill --teacher models/large --layers 0,2,4,6,8,10 --texts news.txt --dev-sts dev.tsv -o models/small",
        "munjang distill --teacher models/large --layers 0,2,4,6,8,10 --texts news.txt --dev-sts dev.tsv -o models/small --resume",
    )
)
def distill(
    teacher: Annotated[str, typer.Option(help="The teacher's name or folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The output folder.")],
    student: Annotated[str | None, typer.Option(help="The student's name or folder. Default with --layers: the teacher.")] = None,
    parallel: Annotated[list[Path] | None, typer.Option(help="A file of sentences and their translations; may be repeated.")] = None,
    texts: Annotated[list[Path] | None, typer.Option(help="A file of any text; may be repeated.")] = None,
    columns: Annotated[str | None, typer.Option(help="The columns of parallel files, the teacher's language first, such as en,ko.")] = None,
    text_columns: Annotated[str | None, typer.Option("--text-column", help="The columns of --texts with text.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="Only rows of --parallel such as split=train or source!=a,b.")] = None,
    text_where: Annotated[list[str] | None, typer.Option(help="The same for --texts.")] = None,
    *,
    rows: Annotated[Chosen, Takes(DataSource)],
    dev_sts: Annotated[
        list[Path] | None, typer.Option(help="Scored pairs to measure on; the first file decides which weights are kept.")
    ] = None,
    scale: Annotated[tuple[float, float] | None, typer.Option(help="Lowest and highest score of --dev-sts, if not recognised.")] = None,
    dev_parallel: Annotated[Path | None, typer.Option(help="Translations to measure on; columns as in --columns.")] = None,
    dev_where: Annotated[list[str] | None, typer.Option(help="Only these rows of --dev-parallel, such as split=dev.")] = None,
    model: Annotated[Chosen, Takes(ModelRecipe, only=["layers", "max_length", "dropout", "prompts"], defaults=STUDENT)],
    projection: Annotated[Chosen, Takes(run_distillation)],
    teaching: Annotated[Chosen, Takes(TeacherRecipe)],
    stage: Annotated[Chosen, Takes(StageRecipe, only=STAGE_KEYS, defaults=DISTILL_STAGE)],
    run: Annotated[Chosen, Takes(TopKeys)],
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted distillation.")] = False,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a student to reproduce a teacher's vectors.

    From parallel text the student learns that a sentence and its translation mean the same; from any text it becomes a smaller or
    faster version of the teacher. The teacher encodes every text once; its vectors are cached on disk.
    """
    if student is None and model["layers"] is None:
        raise UsageError("no student was given\n  name it with --student, or build it from the teacher's layers with --layers")
    plain = DataSource("", "plain", texts=_split_names(text_columns), where=tuple(text_where or ()), **rows)
    pairs = DataSource("", "parallel", texts=_split_names(columns), where=tuple(where or ()), **rows)
    held = replace(pairs, path=str(dev_parallel), where=tuple(dev_where or ()), limit=None)
    with Live() as live:
        result = run_distillation(
            TeacherRecipe(teacher, **teaching),
            ModelRecipe(student or teacher, **model),
            output,
            **projection,
            data=[*(replace(pairs, path=str(path)) for path in parallel or []), *(replace(plain, path=str(path)) for path in texts or [])],
            dev_sts=[DataSource(str(path), label_range=scale) for path in dev_sts or []],
            dev_parallel=held if dev_parallel is not None else None,
            stage=stage,
            **run,
            resume=resume,
            progress=live,
            language=report_language(language),
        )
    if result.training.is_first:
        _show(result, as_json=as_json)


def _show(result: DistillResult, *, as_json: bool) -> None:
    if as_json:
        emit(result.to_json())
        return
    training = result.training
    rows = [
        (one.name, "–" if one.teacher is None else f"{one.teacher:.4f}", _number(one.before), _number(one.after)) for one in result.measures
    ]
    print_table(["measure", "teacher", "before", "after"], rows, right=["teacher", "before", "after"])
    facts = [("model", str(training.output)), ("steps", f"{len(training.log.steps):,}")]
    facts += [("report", str(training.output / "report.html")), ("measures", str(training.output / "distillation.json"))]
    facts += [("warning", training.warning)] if training.warning else []
    print_facts(facts)


def _number(value: float) -> str:
    """Show a score or a small error.

    >>> _number(0.8123), _number(0.00012)
    ('0.8123', '0.00012')
    """
    return f"{value:.4f}" if abs(value) >= 0.01 else f"{value:.2g}"


def _split_names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
