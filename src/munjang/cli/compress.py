"""`munjang compress`: a model and texts → a smaller model, with size, speed and dev score after every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from munjang.atomic import make_folder, sync
from munjang.cli.data_options import ScaleOption, SkipBadOption, locate_file, read_options, tell
from munjang.cli.load_model import load_model
from munjang.cli.options import Chosen, JsonOption, ModelArgument, Takes, chosen_pooling, examples, new_app
from munjang.cli.row_files import no_text
from munjang.cli.show import emit, note, print_facts, print_table, size_text
from munjang.cli.speed import measure
from munjang.data import AnyDataset, LabelledPair, ReadOptions, ScoredPair, TextPair, Triplet, read_any
from munjang.data.unlabelled import read_plain_texts
from munjang.engine.weights import find_weights
from munjang.errors import InputError, UsageError
from munjang.evaluate.pairs import evaluate_pairs
from munjang.evaluate.sts import evaluate_sts
from munjang.evaluate.translation import evaluate_translation
from munjang.evaluate.triplets import evaluate_triplets
from munjang.models.compress.parts import (
    ModelParts,
    add_projection,
    fit_projection,
    keep_layers_of,
    read_parts,
    sample_vectors,
    write_parts,
)
from munjang.models.compress.vocabulary import PruneOptions, prune_parts
from munjang.models.export import export_onnx
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import Option
from munjang.types import DEFAULT_COMPUTE, Compute, Encoder
from munjang.wording import count

app = new_app()

ONE_ROUND = 1.0


@dataclass(frozen=True)
class CompressionSteps:
    """Which steps to take; None and False leave one out."""

    layers: Annotated[tuple[int, ...] | None, Option("Keep only these layers, such as 0,2,4.", flags=("--keep-layers",), commas=True)] = (
        None
    )
    vocabulary: PruneOptions | None = None
    dimension: Annotated[int | None, Option("Reduce vectors to this many dimensions.", min=1, flags=("--dimensions",))] = None
    half: Annotated[bool, Option("Write float16: half the bytes on disk.")] = False
    int8: Annotated[bool, Option("Also measure the result in int8.")] = False

    def check(self) -> None:
        """Refuse a call that asks for nothing."""
        if not (self.layers or self.vocabulary or self.dimension or self.half):
            raise UsageError("no step is asked for\n  give --keep-layers, --vocabulary, --prune, --dimensions or --half")


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
        list[Path] | None, typer.Option("--texts", metavar="FILE", help="Texts like those the model will read; may be repeated.")
    ] = None,
    text_column: Annotated[list[str] | None, typer.Option("--text-column", help="A column with text; may be repeated.")] = None,
    *,
    steps: Annotated[Chosen, Takes(CompressionSteps)],
    pruning: Annotated[Chosen, Takes(PruneOptions)],
    prune: Annotated[bool, typer.Option("--prune", help="Keep all tokens that the texts use.")] = False,
    dev: Annotated[str | None, typer.Option("--dev", help="Scored pairs, same/different pairs or triplets to measure on.")] = None,
    scale: ScaleOption = None,
    skip_bad: SkipBadOption = False,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="Seconds to measure each version.")] = ONE_ROUND,
    as_json: JsonOption = False,
) -> None:
    """Make a model smaller, and measure what each step costs.

    Steps run in this order: layers, vocabulary, dimension, half. Texts whose tokens are all kept have the same vectors after
    --vocabulary or --prune. After --keep-layers, retrain the model with munjang distill.
    """
    from munjang.models.samples import load_samples

    source = resolve(model).path
    wanted = CompressionSteps(**steps, vocabulary=PruneOptions(**pruning) if prune or pruning["size"] else None)
    wanted.check()
    if (wanted.vocabulary or wanted.dimension) and not texts:
        raise UsageError("--vocabulary, --prune and --dimensions need --texts: texts like those the model will read")
    given = _texts(texts, text_column or [], skip_bad) if texts else [sample.text for sample in load_samples()]
    measured_on = None if dev is None else _dev(dev, scale, skip_bad)
    figures = compress_model(source, output, given, wanted=wanted, dev=measured_on, seconds=seconds, tell=note)
    _show(output, figures, wanted, as_json=as_json)


def _texts(files: list[Path], columns: list[str], skip_bad: bool) -> list[str]:
    found: dict[str, None] = {}
    for file in files:
        read = read_plain_texts(file, columns=columns, skip_bad=skip_bad)
        found.update(dict.fromkeys(text for text, _ in read.texts))
        note(f"{file.name}: {count(len(read.texts), 'text')}" + (f", {count(len(read.skipped), 'row')} left out" if read.skipped else ""))
    if not found:
        raise no_text([str(file) for file in files])
    return list(found)


def _dev(file: str, scale: tuple[float, float] | None, skip_bad: bool) -> AnyDataset:
    with locate_file(file, split="dev") as path:
        data = read_dev_file(path, read_options(scale=scale, skip_bad=skip_bad))
    tell(data)
    return data


def _show(output: Path, figures: list[Figures], wanted: CompressionSteps, *, as_json: bool) -> None:
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
        note("retrain a model that lost layers: munjang distill --teacher BEFORE --student AFTER")


SPEED_TEXTS = 128


@dataclass(frozen=True)
class Version:
    """The model after one step."""

    step: str
    detail: str
    path: Path
    compute: Compute = DEFAULT_COMPUTE


@dataclass(frozen=True)
class Figures:
    """What one version costs and is worth."""

    step: str
    detail: str
    bytes: int
    """Of the folder; of the ONNX graph for int8."""
    parameters: int
    dimension: int
    texts_per_second: float
    dev: DevScore | None


Tell = Callable[[str], None]


def compress_model(
    source: Path, target: Path, texts: Sequence[str], *, wanted: CompressionSteps, dev: AnyDataset | None, seconds: float, tell: Tell
) -> list[Figures]:
    """Write the smaller model to `target`; return the figures of the model as it came and after every step."""
    wanted.check()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target}: exists already and is not empty; choose another name, or remove it first")
    make_folder(target.parent)
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as rooms:
        versions = [Version("before", "", source), *_versions(source, Path(rooms), texts, wanted, tell)]
        sample = texts[:: -(-len(texts) // SPEED_TEXTS) or 1]
        int8 = [Version("int8", "computed in int8; size of the ONNX graph", versions[-1].path, "int8")] if wanted.int8 else []
        figures = _figures([*versions, *int8], sample, dev, seconds=seconds, tell=tell)
        if target.is_dir():
            target.rmdir()  # empty, as was checked
        versions[-1].path.replace(target)
        sync(target.parent)
    return figures


def _versions(source: Path, rooms: Path, texts: Sequence[str], wanted: CompressionSteps, tell: Tell) -> Iterator[Version]:
    """Take the steps one after the other, each from what the one before wrote."""
    parts = read_parts(source, pooling=chosen_pooling())

    def write_version(step: str, detail: str, made: ModelParts, *, half: bool = False) -> Version:
        path = rooms / step
        write_parts(made, path, half=half)
        return Version(step, detail, path)

    version = Version("before", "", source)
    if wanted.layers is not None:
        tell("keeping layers")
        parts = keep_layers_of(parts, wanted.layers)
        version = write_version("layers", ", ".join(map(str, wanted.layers)), parts)
        yield version
    if wanted.vocabulary is not None:
        tell(f"pruning the vocabulary to {count(len(texts), 'text')}")
        parts, pruned = prune_parts(parts, texts, options=wanted.vocabulary)
        unchanged = f"{pruned.texts_unchanged:,} of {count(pruned.texts, 'text')} unchanged"
        detail = f"{pruned.pieces_before:,} → {count(pruned.pieces_after, 'piece')}; {unchanged}"
        version = write_version("vocabulary", detail, parts)
        yield version
    if wanted.dimension is not None:
        tell("looking for the directions to keep")
        model = load_model(version.path)
        projection = fit_projection(sample_vectors(model, texts), dimension=wanted.dimension)
        with add_projection(parts, projection) as shorter:
            version = write_version("dimension", f"{projection.kept:.1%} of the vectors' squared length is kept", shorter)
        parts = read_parts(version.path)
        yield version
    if wanted.half:
        tell("halving the numbers")
        yield write_version("half", "float16 on disk, float32 in memory", parts, half=True)


def _figures(versions: Sequence[Version], texts: Sequence[str], dev: AnyDataset | None, *, seconds: float, tell: Tell) -> list[Figures]:
    models = {version.step: load_model(version.path, compute=version.compute) for version in versions}
    tell(f"measuring {count(len(models), 'version')}")
    speeds = {route.compute: route.texts_per_second for route in measure(models, {"given": texts}, seconds=seconds).routes}
    return [
        Figures(
            step=version.step,
            detail=version.detail,
            bytes=_graph_bytes(model) if version.compute == "int8" else folder_bytes(version.path),
            parameters=_parameters(version.path),
            dimension=model.dimension,
            texts_per_second=speeds[version.step],
            dev=None if dev is None else dev_score(model, dev),
        )
        for version, model in zip(versions, models.values(), strict=True)
    ]


def _graph_bytes(model: SentenceEncoder) -> int:
    """Return the size of the int8 graph that `munjang export --int8` would write."""
    with TemporaryDirectory(prefix="munjang-") as place:
        return export_onnx(model, Path(place) / "int8", compute="int8").bytes


def folder_bytes(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _parameters(folder: Path) -> int:
    """Return how many numbers the weights of a folder hold."""
    homes = {path.parent for path in folder.rglob("*.safetensors")}
    return sum(prod(weights.shape(name)) for weights in map(find_weights, homes) for name in weights)


@dataclass(frozen=True)
class DevScore:
    """One number from 0 to 1, or −1 to 1 for a correlation, and what it is."""

    measure: str
    value: float


def read_dev_file(path: Path, options: ReadOptions) -> AnyDataset:
    """Return the rows of a dev file, or say which kinds there are."""
    found = read_any(path, options)
    first = found.rows[0] if found.rows else None
    if not isinstance(first, ScoredPair | LabelledPair | TextPair | Triplet):
        raise InputError(f"{found.source}: {found.layout}, expected scored pairs, same/different pairs, triplets or pairs to measure on")
    return found


def dev_score(encoder: Encoder, data: AnyDataset) -> DevScore:
    """Return the deciding number of a model on a dev file."""
    rows = data.rows
    scored = [row for row in rows if isinstance(row, ScoredPair)]
    if scored:
        return DevScore("spearman_cosine", evaluate_sts(encoder, scored, worst=0, resamples=0).scores["spearman_cosine"])
    labelled = [row for row in rows if isinstance(row, LabelledPair)]
    if labelled:
        return DevScore("cosine_ap", evaluate_pairs(encoder, labelled, resamples=0).scores["cosine_ap"])
    triplets = [row for row in rows if isinstance(row, Triplet)]
    if triplets:
        return DevScore("cosine_accuracy", evaluate_triplets(encoder, triplets, resamples=0).scores["cosine_accuracy"])
    pairs = [row for row in rows if isinstance(row, TextPair)]
    return DevScore("mean_accuracy", evaluate_translation(encoder, pairs, resamples=0).mean_accuracy)
