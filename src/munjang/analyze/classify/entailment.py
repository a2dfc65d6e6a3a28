"""Labels without examples, judged by a cross-encoder for natural-language inference: does the text entail "This text is about …"?

Every text is read with every label, which is slow and needs a model that was trained on inference; the bundled re-ranker was not. Scores
are centred for each label over the collection, so that no label wins only because its sentence follows from everything.

Shapes: N texts, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.classify.apply import TextLabels
from munjang.analyze.classify.fitting import HALF
from munjang.analyze.classify.labels import Multi, make_labels
from munjang.analyze.classify.probability import to_probabilities
from munjang.errors import UsageError, quote
from munjang.options import Option, check_options
from munjang.text.validate_texts import validate_texts
from munjang.types import Scorer, Vectors, check_scorer

KOREAN, ENGLISH = "이 글은 {}에 관한 글이다.", "This text is about {}."
PLACE = "{}"
"""Where the label stands in a template."""
PRIOR_TEXTS = 20
"""How many texts "no text prefers any label" counts as, where a label's usual score is sought."""
ENTAILMENT = "entailment"


def classify_by_entailment(
    texts: Sequence[str],
    labels: object,
    scorer: Scorer,
    *,
    template: Annotated[
        str | None, Option('The sentence to judge, with {} for the label. Default: "This text is about {}.", or Korean.')
    ] = None,
    multi: Multi = False,
) -> TextLabels:
    """Return the labels of texts by how strongly each text entails a sentence with the label."""
    check_options(classify_by_entailment, locals())
    check_scorer(scorer)
    texts, named = validate_texts(texts), make_labels(labels)
    sentences = [write_hypothesis(label.name, template) for label in named]
    column = find_entailment(getattr(scorer, "labels", ()))
    pairs = [(text, sentence) for text in texts for sentence in sentences]
    odds_NC = _log_odds(np.asarray(scorer.predict(pairs), dtype=np.float64), column).reshape(len(texts), len(named))
    weight = len(texts) / (len(texts) + PRIOR_TEXTS)
    scores_NC = odds_NC if multi or not len(texts) else odds_NC - weight * (odds_NC.mean(axis=0) - odds_NC.mean())
    chance_NC: Vectors = to_probabilities(scores_NC, 1.0, multi=multi) if len(texts) else np.zeros((0, len(named)), dtype=np.float32)
    return TextLabels(tuple(label.name for label in named), chance_NC, HALF if multi else 0.0, multi)


def write_hypothesis(label: str, template: str | None) -> str:
    """Return the sentence for a label; without a template, in Korean for a label in Hangul.

    >>> write_hypothesis("sports", None), write_hypothesis("경제", None)
    ('This text is about sports.', '이 글은 경제에 관한 글이다.')
    """
    chosen = template or (KOREAN if any("가" <= letter <= "힣" for letter in label) else ENGLISH)
    if PLACE not in chosen:
        raise UsageError(f"the template {quote(chosen)} has no {PLACE}, expected it where the label goes")
    return chosen.replace(PLACE, label)


def find_entailment(labels: Sequence[str]) -> int | None:
    """Return which of a scorer's labels is entailment; None for a scorer with one score."""
    if len(labels) <= 1:
        return None
    found = next((place for place, label in enumerate(labels) if str(label).lower() == ENTAILMENT), None)
    if found is None:
        names = ", ".join(quote(str(label)) for label in labels)
        raise UsageError(f"the cross-encoder's labels are {names}, expected one called {ENTAILMENT!r}\n  use one trained on inference")
    return found


def _log_odds(scores: NDArray[np.float64], column: int | None) -> NDArray[np.float64]:
    """Return the log-odds of entailment, whether the scorer gives logits, probabilities or one score."""
    if column is None or scores.ndim == 1:
        flat = scores.reshape(-1)
        inside = bool(len(flat)) and flat.min() >= 0 and flat.max() <= 1
        return np.asarray(np.log(np.clip(flat, 1e-6, 1 - 1e-6) / np.clip(1 - flat, 1e-6, 1)) if inside else flat)
    others = np.delete(scores, column, axis=1)
    if np.allclose(scores.sum(axis=1), 1, atol=1e-3) and (scores >= 0).all():
        return np.asarray(np.log(np.clip(scores[:, column], 1e-6, 1)) - np.log(np.clip(others.sum(axis=1), 1e-6, 1)))
    highest = others.max(axis=1)
    return np.asarray(scores[:, column] - (highest + np.log(np.exp(others - highest[:, None]).sum(axis=1))))
