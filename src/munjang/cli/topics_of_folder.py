"""`munjang topics` of the folder of a bulk job, which may be larger than memory: its topics, and the topic of each of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.analyze.topics.assign import assign_topics
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.streaming import PASSES, fit_topics_stream
from munjang.bulk.output import BulkOutput, open_output
from munjang.bulk.row_source import open_rows, to_floats
from munjang.cli.load_model import load_encoder
from munjang.cli.row_files import stream_rows
from munjang.cli.show import emit, print_facts
from munjang.errors import InputError, UsageError
from munjang.models.progress import progress_bar

if TYPE_CHECKING:
    from munjang.analyze.topics.model import TopicModel
    from munjang.cli.options import Chosen, ModelChoice
    from munjang.text.tagging import Tagger
    from munjang.types import Encoder, Vectors

COLUMNS = ("id", "topic", "name", "score")


def fit_folder(place: str, options: Chosen, *, sample: int, by: Tagger, chosen_model: ModelChoice) -> TopicModel:
    """Find the topics of a folder."""
    output = _open_with_texts(place)
    encoder = _load_own(output, chosen_model) if options["labels"] else None
    with progress_bar("texts", PASSES * output.rows, shown=True) as advance:
        fit = partial(fit_topics, encoder=encoder, **options)
        found = fit_topics_stream(lambda: _read_blocks(place), fit, sample=sample, by=by, progress=advance)
    model = output.job.model
    return replace(found, encoder=fingerprint_of(output), encoder_name=chosen_model.model or model.name)


def show_assigned_folder(model: TopicModel, place: str, output: Path | None, *, as_json: bool) -> None:
    """Assign each row of a folder to a topic, a block at a time."""
    source = _open_with_texts(place)
    made = fingerprint_of(source)
    if model.encoder and made != model.encoder:
        raise UsageError(
            f"{place}: was made with another model ({made[:12]}) than the topics ({model.encoder[:12]})\n  fit the topics again"
        )
    counts: dict[int, int] = {}
    with progress_bar("texts", source.rows, shown=True) as advance:
        rows = _list_assigned(model, place, counts, advance)
        if output is None:
            for _ in rows:
                pass
        else:
            stream_rows(output, COLUMNS, rows)
    none = counts.get(-1, 0)
    sizes = [{"topic": topic.id, "name": topic.name, "documents": counts.get(topic.id, 0)} for topic in model.topics]
    if as_json:
        emit({"documents": source.rows, "outliers": none, "topics": sizes, "output": None if output is None else str(output)})
        return
    written = [] if output is None else [("written", str(output))]
    print_facts([("texts", f"{source.rows:,}"), ("without a topic", f"{none:,}"), *written])


def fingerprint_of(output: BulkOutput) -> str:
    """Return what an encoder that makes a folder's vectors is known by; empty where it is cut or rounded so that none is."""
    settings, model = output.job.settings, output.job.model
    if settings.dimensions is not None:
        return ""
    return f"{model.fingerprint} {settings.prompt_name}" if settings.prompt_name else model.fingerprint


def _open_with_texts(place: str) -> BulkOutput:
    open_rows(place)  # refuses vectors of bits
    output = open_output(place)
    if not output.job.settings.keep_text:
        raise UsageError(f"{place}: holds vectors without texts, which topics need\n  make it again with munjang bulk --keep-text")
    if not output.rows:
        raise InputError(f"{place}: holds no row, expected at least one")
    return output


def _read_blocks(place: str) -> Iterator[tuple[list[str], Vectors]]:
    for block in open_rows(place).blocks():
        assert block.texts is not None
        yield block.texts, to_floats(block.vectors_ND)


def _load_own(output: BulkOutput, chosen: ModelChoice) -> Encoder:
    encoder = load_encoder(chosen.model or output.job.model.path, compute=chosen.compute or output.job.settings.compute)
    if encoder.fingerprint != output.job.model.fingerprint:
        raise UsageError(f"{output.storage.place}: was made with another model than {encoder.name}\n  name its model with --model")
    return encoder


def _list_assigned(model: TopicModel, place: str, counts: dict[int, int], advance: Callable[[int], None]) -> Iterator[Mapping[str, Any]]:
    names = {topic.id: topic.name for topic in model.topics}
    for block in open_rows(place).blocks():
        assert block.texts is not None
        found = assign_topics(model, block.texts, vectors=to_floats(block.vectors_ND))
        labels, sizes = np.unique(found.labels, return_counts=True)
        for label, size in zip(labels.tolist(), sizes.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + size
        for id, label, score in zip(block.ids, found.labels.tolist(), found.scores.tolist(), strict=True):
            yield {"id": id, "topic": label, "name": names.get(label, ""), "score": round(score, 6)}
        advance(len(block.ids))
