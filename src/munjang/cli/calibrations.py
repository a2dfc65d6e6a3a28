"""A file that `munjang calibrate -o` wrote → the curve in it, unless it was measured with another model than the one in use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.errors import UsageError, quote

if TYPE_CHECKING:
    from munjang.evaluate.calibrate import Calibration
    from munjang.models.score_pairs import PairModel


def load_calibration_of(model: PairModel, file: Path) -> tuple[Calibration, str | None]:
    """Return the user's own curve, and the label whose probability it reads where the model has several."""
    from munjang.evaluate.calibrate import load_calibration
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.pair_classifier import PairClassifier

    curve = load_calibration(file)
    made_with = json.loads(file.read_text(encoding="utf-8"))
    labels = model.labels if isinstance(model, CrossEncoder | PairClassifier) and len(model.labels) > 1 else ()
    known: dict[str | None, str | None] = {_get_label_fingerprint(model, label): label for label in labels} or {model.fingerprint: None}
    made = made_with.get("fingerprint", None if labels else model.fingerprint)
    if made not in known:
        raise UsageError(
            f"{file.name}: measured with {quote(str(made_with.get('model')))}, and this is {model.name} in {model.compute}\n"
            "  give that model with --model and --compute, or run munjang calibrate with this one"
        )
    return curve, known[made]


def _get_label_fingerprint(model: PairModel, label: str) -> str:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.pair_classifier import PairClassifier

    assert isinstance(model, CrossEncoder | PairClassifier)  # others have no labels
    return model.for_label(label).fingerprint
