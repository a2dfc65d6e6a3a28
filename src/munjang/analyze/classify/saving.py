"""A TextClassifier ↔ a folder of JSON and safetensors files; nothing in it can run.

    classifier.json                labels, settings, the model's fingerprint, and checksums of both files
    arrays-<hash>.safetensors      weights, bias, and what cross-validation said of each example
    body-<hash>/                   a model folder, where the classifier was made with a model tuned for it

The arrays carry their checksum in their name and are written first; classifier.json names them and takes its place in one step. So a folder
holds the old classifier or the new one, never a mixture. A loaded classifier answers exactly as the saved one.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.classify.classifier import HeldOut, TextClassifier
from munjang.analyze.classify.logistic import LinearHead
from munjang.atomic import PARTIAL, atomic_write, make_folder, translate_disk_errors
from munjang.errors import DamagedFile, FolderError, UsageError

FORMAT = "munjang classifier 1"
MAIN = "classifier.json"
_LONGEST = 2**31  # bytes of one file that are read
_ARRAYS = re.compile(r"arrays-([0-9a-f]{64})\.safetensors")
_BODY = re.compile(r"body-[0-9a-f]{16}")
_PARTS = re.compile(rf"{_ARRAYS.pattern}|{_BODY.pattern}|\.body-.*{re.escape(PARTIAL)}|\.(arrays-|{re.escape(MAIN)}).*{re.escape(PARTIAL)}")
_HELD_OUT = ("row_N", "given_N", "best_N", "confidence_N", "given_probability_N")


def save_classifier(classifier: TextClassifier, folder: Path | str) -> None:
    """Write a classifier into a folder, which is made if need be; a classifier that was there is replaced as a whole."""
    folder = Path(folder)
    check_classifier_folder(folder)
    from safetensors.numpy import save

    with translate_disk_errors(folder):
        make_folder(folder)
        arrays = save(_collect_arrays(classifier))
        name = f"arrays-{hashlib.sha256(arrays).hexdigest()}.safetensors"
        atomic_write(folder / name, arrays)
        body = _find_body(classifier, folder)
        facts = {"format": FORMAT, **_collect_facts(classifier), "file": name} | ({"encoder_name": body} if body else {})
        atomic_write(folder / MAIN, _dump({**facts, "checksum": hashlib.sha256(_dump(facts)).hexdigest()}))
    for old in list(folder.iterdir()):
        if _PARTS.fullmatch(old.name) and old.name not in (name, body):
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)


def check_classifier_folder(folder: Path) -> None:
    """Refuse to save a classifier where something else is."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file, expected a folder to save the classifier in")
    if folder.is_dir() and not (folder / MAIN).is_file() and not all(_is_part(path) for path in folder.iterdir()):
        raise UsageError(f"{folder}: holds other files, expected an empty folder or one with a saved classifier")


def load_classifier(folder: Path | str) -> TextClassifier:
    """Read a classifier from a folder; a damaged one is rejected."""
    folder = Path(folder)
    main = folder / MAIN
    if not main.is_file():
        raise FolderError(f"{folder}: holds no {MAIN}, expected a folder that `munjang classify fit FILE -o FOLDER` wrote")
    facts = _parse(main)
    if facts.get("format") != FORMAT:
        raise FolderError(f"{main}: the format is not {FORMAT!r}\n  fit the classifier again with this version")
    checksum = facts.pop("checksum", None)
    if hashlib.sha256(_dump(facts)).hexdigest() != checksum:
        raise DamagedFile(f"{main}: the checksum is wrong, the file was changed or damaged\n  fit the classifier again")
    try:
        if _BODY.fullmatch(str(facts["encoder_name"])):
            facts["encoder_name"] = str(folder / facts["encoder_name"])
        return _build(facts, _read_arrays(folder, facts["file"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DamagedFile(f"{folder}: cannot be understood ({type(error).__name__})\n  fit the classifier again") from None


def _find_body(classifier: TextClassifier, folder: Path) -> str:
    """Return the name of the model inside the folder that the classifier was made with, if it is one."""
    body = Path(classifier.encoder_name)
    return body.name if _BODY.fullmatch(body.name) and body.absolute().parent == folder.absolute() else ""


def _collect_facts(classifier: TextClassifier) -> dict[str, Any]:
    return {
        "labels": list(classifier.labels),
        "temperature": classifier.temperature,
        "multi": classifier.multi,
        "made_of": classifier.made_of,
        "strength": classifier.strength,
        "examples": classifier.examples_C.tolist(),
        "encoder": classifier.encoder,
        "encoder_name": classifier.encoder_name,
    }


def _collect_arrays(classifier: TextClassifier) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"weights": classifier.head.weights_CD, "bias": classifier.head.bias_C}
    arrays |= {name: getattr(classifier.held_out, name) for name in _HELD_OUT}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _build(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> TextClassifier:
    labels, head = tuple(facts["labels"]), LinearHead(arrays["weights"], arrays["bias"])
    held_out = HeldOut(*(arrays[name] for name in _HELD_OUT))
    if head.weights_CD.shape[:1] != head.bias_C.shape or len(labels) != len(head.bias_C) or len(facts["examples"]) != len(labels):
        raise ValueError("labels and weights differ in number")
    if len({len(arrays[name]) for name in _HELD_OUT}) != 1 or not all(isinstance(label, str) for label in labels):
        raise ValueError("the held-out rows differ in number")
    return TextClassifier(
        labels,
        head,
        float(facts["temperature"]),
        bool(facts["multi"]),
        facts["made_of"],
        float(facts["strength"]),
        np.array(facts["examples"], dtype=np.int64),
        held_out,
        str(facts["encoder"]),
        str(facts["encoder_name"]),
    )


def _read_arrays(folder: Path, name: str) -> dict[str, NDArray[Any]]:
    from safetensors.numpy import load

    match = _ARRAYS.fullmatch(name)
    if match is None:
        raise DamagedFile(f"{folder / MAIN}: names a file that is none of a classifier's")
    if not (folder / name).is_file():
        raise DamagedFile(f"{folder / name}: is missing\n  fit the classifier again")
    content = _read_bytes(folder / name)
    if hashlib.sha256(content).hexdigest() != match[1]:
        raise DamagedFile(f"{folder / name}: the checksum is wrong, the file was changed or damaged\n  fit the classifier again")
    return dict(load(content))


def _read_bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > _LONGEST:
        raise DamagedFile(f"{path}: is {size:,} bytes, the limit is {_LONGEST:,}")
    return path.read_bytes()


def _parse(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(_read_bytes(path))
    except ValueError:
        raise DamagedFile(f"{path}: is no JSON, the file was changed or damaged\n  fit the classifier again") from None
    if not isinstance(facts, dict):
        raise DamagedFile(f"{path}: holds no object, the file was changed or damaged\n  fit the classifier again")
    return facts


def _is_part(path: Path) -> bool:
    return _PARTS.fullmatch(path.name) is not None


def _dump(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
