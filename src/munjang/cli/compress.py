"""`munjang compress`: a model and texts → a smaller model, with size, speed and dev score after every step."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.data_options import ScaleOption, SkipBadOption, located, read_options, tell
from munjang.cli.options import JsonOption, ModelArgument, examples, new_app
from munjang.cli.row_files import no_text
from munjang.cli.show import emit, note, print_facts, print_table, size_text
from munjang.errors import UsageError, shown
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.cli.compress_steps import Figures, Wanted
    from munjang.evaluate.datasets import AnyDataset

app = new_app()

ONE_ROUND = 1.0


@app.command(
    epilog=examples(
        "munjang compress models/large -o models/small --texts news.txt --vocabulary 40000 --keep-layers 0,2,4,7,9,11 --dev dev.tsv",
        "munjang compress models/large -o models/half --texts news.txt --dimensions 256 --half --json",
    )
)
def compress(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")],
    texts: Annotated[
        list[Path] | None, typer.Option("--texts", metavar="FILE", help="Texts such as the model will read; may be given again.")
    ] = None,
    text_column: Annotated[list[str] | None, typer.Option("--text-column", help="A column that holds text; say it again for more.")] = None,
    keep_layers: Annotated[str | None, typer.Option("--keep-layers", metavar="0,2,…", help="Keep only these layers.")] = None,
    vocabulary: Annotated[int | None, typer.Option("--vocabulary", min=1, help="Keep so many pieces, the most useful ones.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Keep the pieces that the texts use, however many.")] = False,
    scripts: Annotated[str, typer.Option("--scripts", help="Languages whose characters stay, by code.")] = "ko,en",
    minimum_count: Annotated[int, typer.Option("--minimum-count", min=1, help="How often the texts must use a piece.")] = 1,
    dimension: Annotated[int | None, typer.Option("--dimensions", min=1, help="Shorten vectors to so many numbers.")] = None,
    half: Annotated[bool, typer.Option("--half", help="Write float16: half the bytes on disk.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Also measure the result computed in int8.")] = False,
    dev: Annotated[str | None, typer.Option("--dev", help="Scored pairs, same/different pairs or triplets to measure on.")] = None,
    scale: ScaleOption = None,
    skip_bad: SkipBadOption = False,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="How long to measure the speed of each version.")] = ONE_ROUND,
    as_json: JsonOption = False,
) -> None:
    """Make a model smaller, step by step, and say what each step costs.

    Steps run in this order: layers, vocabulary, dimension, half. Texts whose pieces are all kept have the same vectors after
    --vocabulary or --prune. After --keep-layers the model should learn again: munjang distill.
    """
    from munjang.cli.compress_steps import Wanted, compress_model
    from munjang.models.compress.vocabulary import PruneOptions
    from munjang.models.registry import resolve
    from munjang.models.samples import load_samples

    source = resolve(model).path
    codes = tuple(code.strip() for code in scripts.split(",") if code.strip())
    pruning = PruneOptions(scripts=codes, minimum_count=minimum_count, size=vocabulary) if prune or vocabulary else None
    wanted = Wanted(layers=_numbers(keep_layers), vocabulary=pruning, dimension=dimension, half=half, int8=int8)
    wanted.check()
    if (pruning or dimension) and not texts:
        raise UsageError("--vocabulary, --prune and --dimensions need --texts: texts such as the model will read")
    given = _texts(texts, text_column or [], skip_bad) if texts else [sample.text for sample in load_samples()]
    measured_on = None if dev is None else _dev(dev, scale, skip_bad)
    figures = compress_model(source, output, given, wanted=wanted, dev=measured_on, seconds=seconds, tell=note)
    _show(output, figures, wanted, as_json=as_json)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--keep-layers {shown(text)}, expected numbers with commas between them, such as 0,2,4,7,9,11")
    return tuple(int(part) for part in parts)


def _texts(files: list[Path], columns: list[str], skip_bad: bool) -> list[str]:
    from munjang.train.plain_text import read_plain_texts

    found: dict[str, None] = {}
    for file in files:
        read = read_plain_texts(file, columns=columns, skip_bad=skip_bad)
        found.update(dict.fromkeys(text for text, _ in read.texts))
        note(f"{file.name}: {count(len(read.texts), 'text')}" + (f", {count(len(read.skipped), 'row')} left out" if read.skipped else ""))
    if not found:
        raise no_text([str(file) for file in files])
    return list(found)


def _dev(file: str, scale: tuple[float, float] | None, skip_bad: bool) -> AnyDataset:
    from munjang.cli.dev_score import read_dev_file

    with located(file, split="dev") as path:
        data = read_dev_file(path, read_options(scale=scale, skip_bad=skip_bad))
    tell(data)
    return data


def _show(output: Path, figures: list[Figures], wanted: Wanted, *, as_json: bool) -> None:
    if as_json:
        emit({"path": str(output), "steps": [asdict(one) for one in figures]})
        return
    first = figures[0]
    measure = "" if first.dev is None else f"{first.dev.measure} × 100"
    rows = [
        (
            one.step,
            size_text(one.bytes),
            f"{one.bytes / first.bytes:.2f}",
            f"{one.parameters / 1e6:.1f} M",
            f"{one.dimension}",
            f"{one.texts_per_second:,.0f}",
            f"{one.texts_per_second / first.texts_per_second:.2f}",
            *([] if one.dev is None else [f"{100 * one.dev.value:.2f}"]),
            one.detail,
        )
        for one in figures
    ]
    numbers = ("size", "of before", "numbers", "dimension", "texts/s", "times", *([measure] if measure else []))
    print_table(("after", *numbers, "what"), rows, right=numbers)
    print_facts([("written to", str(output))])
    if wanted.layers:
        note("a model that lost layers should learn again: munjang distill --teacher BEFORE --student AFTER")
