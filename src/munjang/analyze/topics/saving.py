"""A TopicModel ↔ a folder of JSON and safetensors files; nothing in it can run.

    topics.json                    settings, topics, and the checksums of all three files
    documents-<hash>.json          the beginning of each document
    arrays-<hash>.safetensors      prototypes, floors, documents, words

The two large files carry their checksum in their names; topics.json names them and takes its place in one step. So a folder holds the old
model or the new one, never a mixture (`saved_folder.py`). A loaded model answers exactly as the saved one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.contextual import ContextualTopics
from munjang.analyze.saved_folder import FolderPart, SavedFolder, to_json
from munjang.analyze.topics.groups import Projection
from munjang.analyze.topics.model import Assigner, Documents, Prototypes, Streamed, Topic, TopicModel, TopicSettings
from munjang.analyze.topics.topic_words import Bag

MAIN = "topics.json"
FOLDER = SavedFolder("munjang topics 1", MAIN, ("arrays", "documents"), "the topics", "munjang topics FILE -o FOLDER")


def save_topics(model: TopicModel, folder: Path | str) -> None:
    """Write a model into a folder, which is made if need be; a model that was there is replaced as a whole."""
    folder = Path(folder)
    FOLDER.check(folder)
    from safetensors.numpy import save

    arrays = FolderPart("arrays", ".safetensors", save(_collect_arrays(model)))
    texts = FolderPart("documents", ".json", to_json({"excerpts": list(model.documents.excerpts)}))
    FOLDER.write(folder, {**_collect_facts(model), "files": [arrays.name, texts.name]}, [arrays, texts])


def load_topics(folder: Path | str) -> TopicModel:
    """Read a model from a folder; a damaged one is rejected."""
    folder = Path(folder)
    facts = FOLDER.read(folder)
    try:
        return _build_model(facts, *(FOLDER.read_part(folder, name) for name in facts["files"]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FOLDER.refuse(folder, error) from None


def _collect_facts(model: TopicModel) -> dict[str, Any]:
    return {
        "settings": asdict(model.settings),
        "encoder": model.encoder,
        "encoder_name": model.encoder_name,
        "tagger": model.tagger,
        "kind": "prototypes" if isinstance(model.assigner, Prototypes) else "contextual",
        "documents": model.size,
        "outliers": model.outliers,
        "coherence_npmi": model.coherence,
        "diversity": model.diversity,
        "topics": [asdict(topic) for topic in model.topics],
        "names": [[id, name] for id, name in sorted(model.names.items())],
        "vocabulary": list(model.bag.vocabulary),
        "words": [] if isinstance(model.assigner, Prototypes) else list(_build_contextual(model.assigner).words),
    }


def _collect_arrays(model: TopicModel) -> dict[str, NDArray[Any]]:
    documents, bag = model.documents, model.bag
    kept: dict[str, NDArray[Any]] = {
        "floors": model.floors_P,
        "topics": model.topic_P.astype(np.int64),
        "document_keys": documents.keys_N.astype(np.uint64),
        "document_rows": documents.rows_NR,
        "document_components": documents.component_N.astype(np.int64),
        "document_scores": documents.score_N,
        "bag_starts": bag.starts,
        "bag_terms": bag.terms,
        "bag_counts": bag.counts,
    }
    if model.streamed is not None:
        words = model.streamed.words
        kept |= {"streamed_sizes": model.streamed.size_P, "streamed_places": model.streamed.place_N}
        kept |= {"streamed_starts": words.starts, "streamed_terms": words.terms, "streamed_counts": words.counts}
    if isinstance(model.assigner, Prototypes):
        projection = model.assigner.projection
        kept |= {"mean": projection.mean_D, "axes": projection.axes_DR, "centres": model.assigner.centres_PR}
    else:
        kept |= _build_contextual(model.assigner).arrays()
    return {name: np.ascontiguousarray(array) for name, array in kept.items()}


def _build_model(facts: dict[str, Any], raw_arrays: bytes, raw_texts: bytes) -> TopicModel:
    from safetensors.numpy import load

    arrays = load(raw_arrays)
    excerpts = tuple(json.loads(raw_texts)["excerpts"])
    settings = dict(facts["settings"])
    settings |= {"guides": tuple(tuple(group) for group in settings["guides"]), "labels": tuple(settings["labels"])}
    topics = tuple(
        Topic(**{**each, "words": tuple((word, weight) for word, weight in each["words"]), "documents": tuple(each["documents"])})
        for each in facts["topics"]
    )
    return TopicModel(
        TopicSettings(**settings),
        facts["encoder"],
        facts["tagger"],
        _build_assigner(facts, arrays),
        arrays["floors"],
        arrays["topics"],
        Bag(tuple(facts["vocabulary"]), arrays["bag_starts"], arrays["bag_terms"], arrays["bag_counts"]),
        Documents(arrays["document_keys"], arrays["document_rows"], arrays["document_components"], arrays["document_scores"], excerpts),
        topics,
        dict(facts["names"]),
        facts["encoder_name"],
        _build_streamed(facts, arrays),
    )


def _build_streamed(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Streamed | None:
    if "streamed_sizes" not in arrays:
        return None
    words = Bag(tuple(facts["vocabulary"]), *(arrays[f"streamed_{name}"] for name in ("starts", "terms", "counts")))
    return Streamed(facts["documents"], arrays["streamed_sizes"], words, arrays["streamed_places"])


def _build_assigner(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Assigner:
    if facts["kind"] == "prototypes":
        return Prototypes(Projection(arrays["mean"], arrays["axes"]), arrays["centres"])
    return ContextualTopics.from_arrays(facts["words"], arrays)


def _build_contextual(assigner: Assigner) -> ContextualTopics:
    assert isinstance(assigner, ContextualTopics)
    return assigner
