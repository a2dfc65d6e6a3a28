"""Labels without examples: a TextClassifier calibrated against the collection that is to be labelled, or the judgement of a cross-encoder.

A label's vector is the mean of the vectors of its name, its description and its words. Some labels are close to every text ("society"), so
a plain cosine would give them too much; every label's cosines are therefore centred and scaled over the collection. For a small
collection, what the labels say of each other stands in for the texts that are missing. Then the labels move towards the texts that they
fit, a few times (`rounds`), as in k-means with named centres. Rounds and weights were chosen on paraKQC and StyleKQC. At last, where there
are enough texts, a logistic regression learns from the labels of those that are surest of theirs, and from its own in turn (self-training;
chosen on these two, questions of a chat bot, and headings and paragraphs of documentation). The result is a linear function, as a trained
one is.

A cross-encoder for natural-language inference judges whether a text entails "This text is about …" (`classify_by_entailment`). It reads
every text with every label, which is slow, and needs a model that was trained for it. Scores are centred for each label too.

Shapes: N texts, D dimensions, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.classify.apply import TextLabels, score_rows
from munjang.analyze.classify.classifier import HeldOut, TextClassifier
from munjang.analyze.classify.fitting import HALF, find_vectors
from munjang.analyze.classify.labels import Label, Multi, make_labels
from munjang.analyze.classify.logistic import LinearHead, LogisticProblem, Matrix, fit_logistic
from munjang.analyze.classify.probability import to_probabilities
from munjang.errors import UsageError, quote
from munjang.options import Option, check_options
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Ints, Scorer, Vectors, check_encoder, check_scorer
from munjang.vectors.similarity import normalize

ROUNDS = 5
Rounds: TypeAlias = Annotated[int, Option("How often the labels move towards the texts that they fit.", min=0, max=20)]

PRIOR_TEXTS = 20
"""How many texts the labels themselves, or "no text prefers any label", count as, where a label's usual score is sought."""
NAME_TEXTS, NAME_SHARE = 10, 0.2
"""How many texts a label's own vector counts as, where it moves towards the texts that it fits: at least so many, and this share of them,
so that many texts do not carry a label away from its name. The share was chosen on paraKQC, StyleKQC and three sets of documentation."""
TEMPERATURES = (1.0, 0.4)
"""Of scores in standard deviations, for one text and for very many: a small collection says little of what is usual. Chosen on paraKQC
and StyleKQC, since nothing is held out that could say better ones."""
SETTLED_TEXTS = 100
"""With how many texts the temperature is half way."""
SAMPLE = 20_000
"""Texts of a collection that are looked at."""
LEARNT_TEXTS, LEARNT_SAMPLE = 100, 5_000
"""For each label, so many texts must be there for self-training; it looks at so many in all."""
SURE_SHARE, OWN_ROUNDS, OWN_STRENGTH = 0.7, 2, 3.0
"""Which share of the texts of each label it learns from, how often, and how strongly."""


def classify_texts(
    texts: Sequence[str],
    labels: object,
    encoder: Encoder,
    *,
    rounds: Rounds = ROUNDS,
    multi: Multi = False,
    vectors: ArrayLike | None = None,
) -> TextLabels:
    """Return the labels of texts, of which nothing is known but their names, descriptions and typical words.

    >>> classify_texts(["금리가 올랐다"], ["경제", "스포츠"], model)[0].label      # doctest: +SKIP
    '경제'
    """
    texts = validate_texts(texts)
    rows_ND = find_vectors(texts, encoder, vectors) if texts else np.zeros((0, encoder.dimension), dtype=np.float32)
    made = make_classifier(labels, encoder, rounds=rounds, multi=multi, vectors=rows_ND)
    return TextLabels(made.labels, score_rows(made, rows_ND), HALF if multi else 0.0, multi)


def make_classifier(
    labels: object,
    encoder: Encoder,
    *,
    rounds: Rounds = ROUNDS,
    multi: Multi = False,
    vectors: ArrayLike,
) -> TextClassifier:
    """Return a classifier made of labels and of the vectors of a collection, or a sample of it."""
    check_options(make_classifier, locals())
    check_encoder(encoder)
    named = make_labels(labels)
    label_CD = encode_labels(named, encoder)
    rows_ND = np.asarray(vectors, dtype=np.float32).reshape(-1, label_CD.shape[1])
    rows_ND = normalize(rows_ND[:: max(1, -(-len(rows_ND) // SAMPLE))]) if len(rows_ND) else rows_ND
    head = calibrate_labels(label_CD, label_CD, rows_ND)
    for _ in range(rounds if len(rows_ND) > len(named) else 0):
        head = calibrate_labels(_move_labels(label_CD, head, rows_ND), label_CD, rows_ND)
    if rounds and not multi and len(rows_ND) >= LEARNT_TEXTS * len(named) > LEARNT_TEXTS:
        head = learn_own_labels(head, rows_ND[:: max(1, len(rows_ND) // LEARNT_SAMPLE)])
    none, empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    return TextClassifier(
        tuple(label.name for label in named),
        head,
        choose_temperature(len(rows_ND)),
        multi,
        "labels",
        0.0,
        np.zeros(len(named), dtype=np.int64),
        HeldOut(none, none, none, empty, empty),
        encoder.fingerprint,
        str(getattr(encoder, "name", "")),
    )


def choose_temperature(texts: int) -> float:
    """Return the temperature for a collection of so many texts.

    >>> [round(choose_temperature(texts), 2) for texts in (0, 100, 10_000)]
    [1.0, 0.7, 0.41]
    """
    alone, many = TEMPERATURES
    return many + (alone - many) * SETTLED_TEXTS / (SETTLED_TEXTS + texts)


def encode_labels(labels: Sequence[Label], encoder: Encoder) -> Vectors:
    """Return one unit vector per label: the mean of the vectors of its name, its description and its words."""
    parts = [[label.name, *([label.description] if label.description.strip() else []), *label.words] for label in labels]
    rows_PD = normalize(np.asarray(encoder.encode([text for each in parts for text in each]), dtype=np.float32))
    starts = np.cumsum([0, *(len(each) for each in parts[:-1])])
    return normalize(np.add.reduceat(rows_PD, starts, axis=0))


def calibrate_labels(centre_CD: Vectors, label_CD: Vectors, rows_ND: Vectors) -> LinearHead:
    """Return scores in standard deviations: each label's cosines, less their mean over the collection, by their spread."""
    among_CC = label_CD @ centre_CD.T
    apart = ~np.eye(len(centre_CD), dtype=bool)
    prior_C = among_CC.mean(axis=0, where=apart)
    cosine_NC = rows_ND @ centre_CD.T
    weight = len(rows_ND) / (len(rows_ND) + PRIOR_TEXTS)
    mean_C = weight * cosine_NC.mean(axis=0) + (1 - weight) * prior_C if len(rows_ND) else prior_C
    spread = float(among_CC.std(where=apart)) or 1.0
    variance_C = np.full(len(centre_CD), max(spread, 1e-3) ** 2)
    if len(rows_ND):
        variance_C = weight * cosine_NC.var(axis=0) + (1 - weight) * variance_C
    deviation_C = np.sqrt(np.maximum(variance_C, 1e-6)).astype(np.float32)
    return LinearHead((centre_CD / deviation_C[:, None]).astype(np.float32), (-mean_C / deviation_C).astype(np.float32))


def _move_labels(label_CD: Vectors, head: LinearHead, rows_ND: Vectors) -> Vectors:
    """Return each label's vector, moved towards the mean of the texts that fit it best."""
    best_N = head.scores(rows_ND).argmax(axis=1)
    texts_C = np.bincount(best_N, minlength=len(label_CD))
    moved_CD = label_CD.astype(np.float64) * np.maximum(NAME_TEXTS, NAME_SHARE * texts_C)[:, None]
    np.add.at(moved_CD, best_N, rows_ND)
    return normalize(moved_CD)


def learn_own_labels(head: LinearHead, rows_ND: Vectors) -> LinearHead:
    """Return a head that has learnt from the surest labels of another, and of its own, and is as sure as that one on the whole."""
    margin_N = wanted_N = _measure_margins(head.scores(rows_ND))
    for _ in range(OWN_ROUNDS):
        best_N = head.scores(rows_ND).argmax(axis=1)
        rows = np.concatenate([_find_surest(np.flatnonzero(best_N == label), margin_N) for label in range(len(head.bias_C))])
        target_NC = best_N[rows, None] == np.arange(len(head.bias_C))
        if not target_NC.any(axis=0).all():
            return head
        mean_D = rows_ND[rows].mean(axis=0)
        problem = LogisticProblem(rows_ND[rows] - mean_D, target_NC, np.ones(len(rows)), False)
        learnt = fit_logistic(problem, strength=OWN_STRENGTH)
        margin_N = _measure_margins(learnt.scores(rows_ND - mean_D))
        scale = float(wanted_N.mean()) / max(float(margin_N.mean()), 1e-6)
        weights_CD = (learnt.weights_CD * scale).astype(np.float32)
        head = LinearHead(weights_CD, (learnt.bias_C * scale - weights_CD @ mean_D).astype(np.float32))
    return head


def _measure_margins(scores_NC: Matrix) -> Matrix:
    """Return how far each row's best label is ahead of the next one."""
    ordered_NC = np.sort(scores_NC, axis=1)
    return np.asarray(ordered_NC[:, -1] - ordered_NC[:, -2])


def _find_surest(rows: Ints, margin_N: Matrix) -> Ints:
    """Return the share of a label's rows whose label is farthest ahead of the next one, one at least."""
    return rows[np.argsort(-margin_N[rows], kind="stable")[: max(1, int(SURE_SHARE * len(rows)))]]


KOREAN, ENGLISH = "이 글은 {}에 관한 글이다.", "This text is about {}."
PLACE = "{}"
"""Where the label stands in a template."""
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
