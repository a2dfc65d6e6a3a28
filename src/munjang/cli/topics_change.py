"""`munjang topics merge|split|outliers|rename|update`: saved topics → saved topics, in place or in another folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from munjang.cli.options import (
    UTF8,
    EncodingOption,
    FormatOption,
    JsonOption,
    LibraryComputeOption,
    ModelOption,
    NoQuotingOption,
    TextColumnOption,
    TextsArgument,
    examples,
)
from munjang.cli.row_files import Columns
from munjang.cli.topics_files import FolderArgument, VectorsOption
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.analyze.topics.model import TopicModel

ElsewhereOption: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="Save in this folder; without it, in the model's own.")
]


def merge(
    folder: FolderArgument,
    topics: Annotated[list[int] | None, typer.Argument(metavar="TOPIC…", help="The topics that become one, by their numbers.")] = None,
    to: Annotated[int | None, typer.Option(min=1, help="Merge the closest topics until there are this many.")] = None,
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make several saved topics one, or merge the closest ones until there are few enough."""
    from munjang.analyze.topics.change import merge_topics, with_fewer_topics

    if bool(topics) == (to is not None):
        raise UsageError("merge takes the numbers of topics, or --to: expected one of them")
    model = _loaded(folder)
    changed = merge_topics(model, [topics]) if topics else with_fewer_topics(model, to or 1)
    _saved(changed, folder, output, as_json)


def split(
    folder: FolderArgument,
    topic: Annotated[int, typer.Argument(metavar="TOPIC", help="The topic to divide, by its number.")],
    parts: Annotated[int, typer.Option(min=2, help="How many topics it becomes.")] = 2,
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Divide a saved topic."""
    from munjang.analyze.topics.change import split_topic

    _saved(split_topic(_loaded(folder), topic, parts), folder, output, as_json)


def outliers(
    folder: FolderArgument,
    share: Annotated[float, typer.Argument(metavar="SHARE", min=0, max=1, help="The largest share of documents without a topic.")],
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let fewer or more documents stay without a topic; 0 gives every document one."""
    from munjang.analyze.topics.change import with_outliers

    _saved(with_outliers(_loaded(folder), share), folder, output, as_json)


def rename(
    folder: FolderArgument,
    topic: Annotated[int, typer.Argument(metavar="TOPIC", help="The topic, by its number.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a saved topic a name."""
    from munjang.analyze.topics.change import renamed

    _saved(renamed(_loaded(folder), topic, name), folder, output, as_json)


def update(
    folder: FolderArgument,
    file: TextsArgument,
    output: ElsewhereOption = None,
    vectors: VectorsOption = None,
    model: ModelOption = None,
    text_column: TextColumnOption = None,
    format: FormatOption = None,
    encoding: EncodingOption = UTF8,
    no_quoting: NoQuotingOption = False,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add more documents to saved topics; what fits none becomes topics of its own."""
    from munjang.analyze.topics.update import update_topics
    from munjang.cli.collection import read_collection
    from munjang.cli.topics_files import own_encoder, read_vectors

    found = _loaded(folder)
    read = read_collection(file, Columns(text_column, None, format, encoding, no_quoting))
    ready = None if vectors is None else read_vectors(vectors)
    encoder = None if ready is not None else own_encoder(found, model, compute)
    _saved(update_topics(found, read.texts, vectors=ready, encoder=encoder), folder, output, as_json)


def register(app: typer.Typer) -> None:
    """Add these commands to `munjang topics`."""
    app.command(epilog=examples("munjang topics merge model/ 3 7", "munjang topics merge model/ --to 10 -o fewer/"))(merge)
    app.command(epilog=examples("munjang topics split model/ 0 --parts 3"))(split)
    app.command(epilog=examples("munjang topics outliers model/ 0"))(outliers)
    app.command(epilog=examples('munjang topics rename model/ 0 "elections"'))(rename)
    app.command(epilog=examples("munjang topics update model/ more.csv"))(update)


def _loaded(folder: Path) -> TopicModel:
    from munjang.analyze.topics.saving import load_topics

    return load_topics(folder)


def _saved(model: TopicModel, folder: Path, output: Path | None, as_json: bool) -> None:
    from munjang.analyze.topics.saving import save_topics
    from munjang.cli.topics_show import show_model

    save_topics(model, output or folder)
    show_model(model, as_json=as_json, saved=str(output or folder))
