"""A TextClassifier ↔ a folder of JSON and safetensors files; nothing in it can run.

    classifier.json                labels, settings, the model's fingerprint, and checksums of both files
    arrays-<hash>.safetensors      weights, bias, and what cross-validation said of each example
    body-<hash>/                   a model folder, where the classifier was made with a model tuned for it

The arrays carry their checksum in their name; classifier.json names them and takes its place in one step. So a folder holds the old
classifier or the new one, never a mixture (`saved_folder.py`). A loaded classifier answers exactly as the saved one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.classify.classifier import HeldOut, TextClassifier
from munjang.analyze.classify.logistic import LinearHead
from munjang.analyze.saved_folder import FolderPart, SavedFolder
from munjang.atomic import PARTIAL

MAIN = "classifier.json"
_BODY = r"body-[0-9a-f]{16}"
_HELD_OUT = ("row_N", "given_N", "best_N", "confidence_N", "given_probability_N")

FOLDER = SavedFolder(
    "munjang classifier 1",
    MAIN,
    ("arrays",),
    "the classifier",
    "munjang classify fit FILE -o FOLDER",
    others=rf"{_BODY}|\.body-.*{re.escape(PARTIAL)}",
)


def save_classifier(classifier: TextClassifier, folder: Path | str) -> None:
    """Write a classifier into a folder, which is made if need be; a classifier that was there is replaced as a whole."""
    folder = Path(folder)
    FOLDER.check(folder)
    from safetensors.numpy import save

    arrays, body = FolderPart("arrays", ".safetensors", save(_collect_arrays(classifier))), _find_body(classifier, folder)
    facts = {**_collect_facts(classifier), "file": arrays.name} | ({"encoder_name": body} if body else {})
    FOLDER.write(folder, facts, [arrays], keep=[body])


def load_classifier(folder: Path | str) -> TextClassifier:
    """Read a classifier from a folder; a damaged one is rejected."""
    from safetensors.numpy import load

    folder = Path(folder)
    facts = FOLDER.read(folder)
    try:
        if re.fullmatch(_BODY, str(facts["encoder_name"])):
            facts["encoder_name"] = str(folder / facts["encoder_name"])
        return _build(facts, dict(load(FOLDER.read_part(folder, facts["file"]))))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FOLDER.refuse(folder, error) from None


def _find_body(classifier: TextClassifier, folder: Path) -> str:
    """Return the name of the model inside the folder that the classifier was made with, if it is one."""
    body = Path(classifier.encoder_name)
    return body.name if re.fullmatch(_BODY, body.name) and body.absolute().parent == folder.absolute() else ""


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
