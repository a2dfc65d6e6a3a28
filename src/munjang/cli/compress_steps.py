"""A model and the steps asked for → the smaller model's folder, and each step's size, speed and dev score.

Steps run in one order: layers, vocabulary, dimension, half. The work itself is `models.compress`'; this file keeps the version after every
step in a folder of its own until all were measured side by side, in turns, so that a busy machine disturbs all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from munjang.cli.dev_score import DevScore, dev_score
from munjang.cli.options import chosen_pooling
from munjang.cli.speed import measure
from munjang.cli.watched import load_model
from munjang.engine.transformer import Compute
from munjang.engine.weights import find_weights
from munjang.errors import UsageError
from munjang.evaluate.datasets import AnyDataset
from munjang.models.compress.dimension import fit_projection, sample_vectors, with_projection
from munjang.models.compress.layers import keep_layers_of
from munjang.models.compress.parts import ModelParts, read_parts, write_parts
from munjang.models.compress.vocabulary import PruneOptions, prune_parts
from munjang.models.export import export_onnx
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.whole_file import make_folder, sync
from munjang.wording import count

SPEED_TEXTS = 128


@dataclass(frozen=True)
class Wanted:
    """Which steps to take; None and False leave one out."""

    layers: tuple[int, ...] | None = None
    vocabulary: PruneOptions | None = None
    dimension: int | None = None
    half: bool = False
    int8: bool = False

    def check(self) -> None:
        """Refuse a call that asks for nothing."""
        if not (self.layers or self.vocabulary or self.dimension or self.half):
            raise UsageError("no step is asked for\n  give --keep-layers, --vocabulary, --prune, --dimensions or --half")


@dataclass(frozen=True)
class Version:
    """The model after one step."""

    step: str
    detail: str
    path: Path
    compute: Compute = "float32"


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
    source: Path, target: Path, texts: Sequence[str], *, wanted: Wanted, dev: AnyDataset | None, seconds: float, tell: Tell
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


def _versions(source: Path, rooms: Path, texts: Sequence[str], wanted: Wanted, tell: Tell) -> Iterator[Version]:
    """Take the steps one after the other, each from what the one before wrote."""
    parts = read_parts(source, pooling=chosen_pooling())

    def written(step: str, detail: str, made: ModelParts, *, half: bool = False) -> Version:
        path = rooms / step
        write_parts(made, path, half=half)
        return Version(step, detail, path)

    version = Version("before", "", source)
    if wanted.layers is not None:
        tell("keeping layers")
        parts = keep_layers_of(parts, wanted.layers)
        version = written("layers", ", ".join(map(str, wanted.layers)), parts)
        yield version
    if wanted.vocabulary is not None:
        tell(f"pruning the vocabulary to {count(len(texts), 'text')}")
        parts, pruned = prune_parts(parts, texts, options=wanted.vocabulary)
        unchanged = f"{pruned.texts_unchanged:,} of {count(pruned.texts, 'text')} unchanged"
        detail = f"{pruned.pieces_before:,} → {count(pruned.pieces_after, 'piece')}; {unchanged}"
        version = written("vocabulary", detail, parts)
        yield version
    if wanted.dimension is not None:
        tell("looking for the directions to keep")
        model = load_model(version.path)
        projection = fit_projection(sample_vectors(model, texts), dimension=wanted.dimension)
        with with_projection(parts, projection) as shorter:
            version = written("dimension", f"{projection.kept:.1%} of the vectors' squared length is kept", shorter)
        parts = read_parts(version.path)
        yield version
    if wanted.half:
        tell("halving the numbers")
        yield written("half", "float16 on disk, float32 in memory", parts, half=True)


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
