"""A TopicModel ↔ a folder of JSON and safetensors files; nothing in it can run.

    topics.json                    settings, topics, and the checksums of all three files
    documents-<hash>.json          the beginning of each document
    arrays-<hash>.safetensors      prototypes, floors, documents, words

The two large files carry their checksum in their names and are written first; topics.json names them and takes its place in one step. So a
folder holds the old model or the new one, never a mixture. A loaded model answers exactly as the saved one.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.contextual import ContextualTopics
from munjang.analyze.topics.groups import Projection
from munjang.analyze.topics.model import Assigner, Documents, Prototypes, Topic, TopicModel, TopicSettings
from munjang.analyze.topics.topic_words import Bag
from munjang.atomic import PARTIAL, atomic_write, make_folder, translate_disk_errors
from munjang.errors import DamagedFile, FolderError, UsageError

FORMAT = "munjang topics 1"
MAIN = "topics.json"
_LONGEST = 2**31  # bytes of one file that are read
_PARTS = re.compile(rf"(arrays|documents)-[0-9a-f]{{64}}\.(json|safetensors)|\.(arrays|documents)-.*{re.escape(PARTIAL)}")


def save_topics(model: TopicModel, folder: Path | str) -> None:
    """Write a model into a folder, which is made if need be; a model that was there is replaced as a whole."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file, expected a folder to save the topics in")
    if folder.is_dir() and not (folder / MAIN).is_file() and not all(_is_part_of_a_save(path.name) for path in folder.iterdir()):
        raise UsageError(f"{folder}: holds other files, expected an empty folder or one with saved topics")
    from safetensors.numpy import save

    with translate_disk_errors(folder):
        make_folder(folder)
        arrays = _write_part(folder, "arrays", ".safetensors", save(_collect_arrays(model)))
        texts = _write_part(folder, "documents", ".json", _to_json({"excerpts": list(model.documents.excerpts)}))
        facts = {"format": FORMAT, **_collect_facts(model), "files": [arrays, texts]}
        atomic_write(folder / MAIN, _to_json({**facts, "checksum": hashlib.sha256(_to_json(facts)).hexdigest()}))
    for old in list(folder.iterdir()):
        if _is_part_of_a_save(old.name) and old.name not in (arrays, texts):
            old.unlink()


def load_topics(folder: Path | str) -> TopicModel:
    """Read a model from a folder; a damaged one is rejected."""
    folder = Path(folder)
    if not (folder / MAIN).is_file():
        raise FolderError(f"{folder}: holds no {MAIN}, expected a folder that `munjang topics FILE -o FOLDER` wrote")
    facts = _parse(_read_bytes(folder / MAIN), folder / MAIN)
    if facts.get("format") != FORMAT:
        raise FolderError(f"{folder / MAIN}: the format is not {FORMAT!r}\n  fit the topics again with this version")
    checksum = facts.pop("checksum", None)
    if hashlib.sha256(_to_json(facts)).hexdigest() != checksum:
        raise DamagedFile(f"{folder / MAIN}: the checksum is wrong, the file was changed or damaged\n  fit the topics again")
    try:
        return _build_model(facts, *(_read_part(folder, name) for name in facts["files"]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFile(f"{folder}: cannot be understood ({type(error).__name__})\n  fit the topics again") from None


def _collect_facts(model: TopicModel) -> dict[str, Any]:
    return {
        "settings": asdict(model.settings),
        "encoder": model.encoder,
        "encoder_name": model.encoder_name,
        "tagger": model.tagger,
        "kind": "prototypes" if isinstance(model.assigner, Prototypes) else "contextual",
        "documents": len(model.documents),
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
    )


def _build_assigner(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Assigner:
    if facts["kind"] == "prototypes":
        return Prototypes(Projection(arrays["mean"], arrays["axes"]), arrays["centres"])
    return ContextualTopics.from_arrays(facts["words"], arrays)


def _build_contextual(assigner: Assigner) -> ContextualTopics:
    assert isinstance(assigner, ContextualTopics)
    return assigner


def _is_part_of_a_save(name: str) -> bool:
    """Return whether saving, this one or one that was killed, gives such a name to a file beside topics.json."""
    return _PARTS.fullmatch(name) is not None or (name.startswith(f".{MAIN}.") and name.endswith(PARTIAL))


def _write_part(folder: Path, kind: str, suffix: str, content: bytes) -> str:
    name = f"{kind}-{hashlib.sha256(content).hexdigest()}{suffix}"
    atomic_write(folder / name, content)
    return name


def _read_part(folder: Path, name: str) -> bytes:
    if Path(name).name != name:
        raise DamagedFile(f"{folder / MAIN}: names a file outside of the folder")
    if not (folder / name).is_file():
        raise DamagedFile(f"{folder / name}: is missing\n  fit the topics again")
    content = _read_bytes(folder / name)
    if hashlib.sha256(content).hexdigest() != name.partition("-")[2].partition(".")[0]:
        raise DamagedFile(f"{folder / name}: the checksum is wrong, the file was changed or damaged\n  fit the topics again")
    return content


def _read_bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > _LONGEST:
        raise DamagedFile(f"{path}: is {size:,} bytes, the limit is {_LONGEST:,}")
    return path.read_bytes()


def _parse(content: bytes, path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(content)
    except ValueError:
        raise DamagedFile(f"{path}: is no JSON, the file was changed or damaged\n  fit the topics again") from None
    if not isinstance(facts, dict):
        raise DamagedFile(f"{path}: holds no object, the file was changed or damaged\n  fit the topics again")
    return facts


def _to_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
