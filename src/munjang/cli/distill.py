"""`munjang distill`: a teacher, a student, text → the student with the teacher's vectors, and a report before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from munjang.cli.options import JsonOption, LanguageOption, TrainDeviceOption, examples, new_app, report_language
from munjang.cli.show import emit, print_facts, print_table
from munjang.errors import UsageError, quote
from munjang.types import Compute

if TYPE_CHECKING:
    from munjang.train.distill.run import DistillResult

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
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and count broken lines.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Use this many rows of each file, drawn with the seed.")] = None,
    dev_sts: Annotated[
        list[Path] | None, typer.Option(help="Scored pairs to measure on; the first file decides which weights are kept.")
    ] = None,
    scale: Annotated[tuple[float, float] | None, typer.Option(help="Lowest and highest score of --dev-sts, if not recognised.")] = None,
    dev_parallel: Annotated[Path | None, typer.Option(help="Translations to measure on; columns as in --columns.")] = None,
    dev_where: Annotated[list[str] | None, typer.Option(help="Only these rows of --dev-parallel, such as split=dev.")] = None,
    layers: Annotated[str | None, typer.Option(help="Keep only these layers of the student, from 0, such as 0,2,4.")] = None,
    projection: Annotated[
        Literal["pca", "dense"], typer.Option(help="For a wider teacher: project its vectors, or widen the student with a layer.")
    ] = "pca",
    teacher_prompt: Annotated[
        str | None, typer.Option(help="The name or text of a prompt to put before each of the teacher's texts.")
    ] = None,
    teacher_compute: Annotated[Compute, typer.Option(help="The teacher's arithmetic.")] = "float32",
    prompts: Annotated[
        bool, typer.Option("--prompts/--no-prompts", help="Keep the prompts of the student's base model; training does not use them.")
    ] = False,
    cache: Annotated[Path | None, typer.Option(help="A folder for the teacher's vectors that several trainings can share.")] = None,
    max_length: Annotated[int | None, typer.Option(min=3, help="Truncate the student's texts to this many tokens.")] = None,
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="The student's dropout during training.")] = 0.0,
    epochs: Annotated[int, typer.Option(min=1)] = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after this many steps, regardless of epochs.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per batch; a parallel row is two sentences.")] = 64,
    accumulate: Annotated[int, typer.Option(min=1, help="Batches per step.")] = 1,
    length_window: Annotated[
        int | None, typer.Option(min=0, help="Sort this many batches together by length, such as 20: somewhat faster.")
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="The peak learning rate, after the warm-up.")] = 1e-4,
    warmup: Annotated[float, typer.Option(min=0, max=1, help="The fraction of steps in which the learning rate rises.")] = 0.1,
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.0,
    evaluate_every: Annotated[int | None, typer.Option(min=1, help="Measure on the first dev file every this many steps.")] = None,
    patience: Annotated[int | None, typer.Option(min=1, help="Stop after this many measurements without improvement.")] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Save a checkpoint every this many steps.")] = 500,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")] = 42,
    device: TrainDeviceOption = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted distillation.")] = False,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a student to reproduce a teacher's vectors.

    From parallel text the student learns that a sentence and its translation mean the same; from any text it becomes a smaller or
    faster version of the teacher. The teacher encodes every text once; its vectors are cached on disk.
    """
    from munjang.train import explain_import_error

    try:
        from munjang.train.distill.run import DistillOptions, run_distillation
        from munjang.train.examples import DataSource
        from munjang.train.progress import Live
        from munjang.train.recipe import ModelRecipe, TeacherRecipe
    except ImportError as error:
        raise explain_import_error(error) from error
    if student is None and layers is None:
        raise UsageError("no student was given\n  name it with --student, or build it from the teacher's layers with --layers")
    plain = DataSource("", "plain", texts=_listed(text_columns), where=tuple(text_where or ()), skip_bad=skip_bad, limit=limit)
    pairs = DataSource("", "parallel", texts=_listed(columns), where=tuple(where or ()), skip_bad=skip_bad, limit=limit)
    held = replace(pairs, path=str(dev_parallel), where=tuple(dev_where or ()), limit=None)
    options = DistillOptions(
        teacher=TeacherRecipe(teacher, teacher_prompt, teacher_compute, None if cache is None else str(cache)),
        student=ModelRecipe(student or teacher, layers=_numbers(layers), max_length=max_length, dropout=dropout, prompts=prompts),
        projection=projection,
        output=str(output),
        data=(*(replace(pairs, path=str(path)) for path in parallel or []), *(replace(plain, path=str(path)) for path in texts or [])),
        dev_sts=tuple(DataSource(str(path), label_range=scale) for path in dev_sts or []),
        dev_parallel=held if dev_parallel is not None else None,
        seed=seed,
        checkpoint_every=checkpoint_every,
        device=device,
        stage={
            "epochs": epochs,
            "steps": steps,
            "batch_size": batch_size,
            "accumulate": accumulate,
            "length_window": length_window,
            "learning_rate": learning_rate,
            "warmup": warmup,
            "weight_decay": weight_decay,
            "evaluate_every": evaluate_every,
            "patience": patience,
        },
    )
    with Live() as live:
        result = run_distillation(options, resume=resume, progress=live, language=report_language(language))
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


def _listed(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--layers {quote(text)}: expected numbers with commas between them, such as 0,2,4") from None
