"""Examples → a TextClassifier: logistic regression on the vectors of a frozen model, its strength chosen by cross-validation.

Every strength is tried on the same folds, and its log-loss of held-out rows is taken after a temperature has been fitted for it, so that a
strength is not preferred for being cautious. The chosen strength is a mean over all, weighted by how likely each loss makes it: with few
examples the least loss is often a matter of chance. The temperature of the chosen one makes the probabilities of the final classifier,
which sees all rows.

Folds neither lose a label nor leak: texts that are the same, or nearly, stay in one fold (otherwise a row would be predicted from its own
copy), labels are spread evenly, and the only rows of a label are never held out.

Shapes: N rows, D dimensions, C labels, H rows that are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.classify.classifier import NO_LABEL, HeldOut, TextClassifier
from munjang.analyze.classify.labels import LabelledRows, Multi, label_rows
from munjang.analyze.classify.logistic import LinearHead, LogisticProblem, Matrix, fit_logistic
from munjang.analyze.classify.probability import fit_temperature, log_loss, to_probabilities
from munjang.analyze.dedupe import find_connected, measure_overlap, split_words
from munjang.analyze.pairs import mine_pairs
from munjang.errors import UsageError
from munjang.options import Option, Seed, check_options
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Ints, Vectors, check_encoder
from munjang.vectors.similarity import normalize, to_rows
from munjang.wording import brief_repr, count

FOLDS = 5
SMALL_FOLDS = 10
"""Folds of a small collection, where every row that is held out is missed."""
SMALL = 2_000
"""Rows up to which a collection is small."""
NEAR = 0.97
"""The cosine from which texts that share half of their words are near-duplicates."""
SHARED_WORDS = 0.5
COMPARED = 10_000
"""Rows up to which all are compared by their vectors; in larger collections only equal texts are kept together."""
NEVER = -1
"""The fold of rows that are never held out."""


@brief_repr
@dataclass(frozen=True, eq=False)
class RepeatedTexts:
    """Which rows repeat others."""

    group_N: Ints
    """Rows with the same number are the same text, or nearly."""
    repeats: int
    """Rows that have another one like them."""
    conflicts: tuple[tuple[int, ...], ...]
    """Groups of equal texts that have different labels."""


def find_repeats(texts: Sequence[str], vectors_ND: Vectors, target_NC: NDArray[np.bool_]) -> RepeatedTexts:
    """Return which rows are the same text but for white space and case, or nearly the same by their vectors."""
    first: dict[str, int] = {}
    links = []
    equal: dict[int, list[int]] = {}
    for row, text in enumerate(texts):
        one = first.setdefault(" ".join(text.casefold().split()), row)
        equal.setdefault(one, []).append(row)
        if one != row:
            links.append((one, row))
    if 1 < len(first) <= COMPARED:
        rows = np.fromiter(first.values(), dtype=np.int64)
        near = mine_pairs(vectors_ND[rows], threshold=NEAR, top=20 * len(rows))
        pairs = ((int(rows[pair.a]), int(rows[pair.b])) for pair in near.pairs)
        words = cache(lambda row: split_words(texts[row]))
        links += [pair for pair in pairs if measure_overlap(words(pair[0]), words(pair[1])) >= SHARED_WORDS]
    group_N = np.arange(len(texts), dtype=np.int64)
    groups = find_connected(links) if links else []
    for group in groups:
        group_N[list(group)] = group[0]
    conflicts = tuple(tuple(rows) for rows in equal.values() if len(rows) > 1 and len({target_NC[row].tobytes() for row in rows}) > 1)
    return RepeatedTexts(group_N, sum(len(group) for group in groups), conflicts)


def make_folds(target_NC: NDArray[np.bool_], group_N: Ints, *, seed: int, folds: int | None = None) -> Ints:
    """Return each row's fold, from 0, or NEVER; without `folds`, as many as suit the number of rows."""
    rows = len(target_NC)
    random = np.random.default_rng(seed)
    groups, place_N = np.unique(group_N, return_inverse=True)
    first_G = np.full(len(groups), -1, dtype=np.int64)
    kind_N = _number_label_sets(target_NC)
    for row in range(rows - 1, -1, -1):
        first_G[place_N[row]] = row
    kind_G = kind_N[first_G]
    folds = folds or (SMALL_FOLDS if rows <= SMALL else FOLDS)
    most = int(np.bincount(kind_G).max(initial=0))
    folds = max(2, min(folds, most))
    fold_G = np.zeros(len(groups), dtype=np.int64)
    next_fold = 0
    for kind in range(int(kind_G.max(initial=-1)) + 1):
        members = np.flatnonzero(kind_G == kind)
        random.shuffle(members)
        fold_G[members] = (next_fold + np.arange(len(members))) % folds
        next_fold = (next_fold + len(members)) % folds
    fold_N: Ints = fold_G[place_N]
    for label in range(target_NC.shape[1]):
        held = fold_N[target_NC[:, label]]
        if len(held) and (held == held[0]).all():  # its rows are all in one fold, or never held out
            fold_N[target_NC[:, label]] = NEVER
    return fold_N


def _number_label_sets(target_NC: NDArray[np.bool_]) -> Ints:
    """Return a number for each different set of labels; rows with one label have as many as there are labels."""
    numbers: dict[bytes, int] = {}
    packed_NB = np.packbits(target_NC, axis=1)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed_NB], dtype=np.int64)


STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
DEFAULT_STRENGTH = 10.0
"""Where nothing can be held out, or there are very many labels."""
MANY_LABELS = 1_000
MANY_STEPS = 30
"""Steps of the optimiser for very many labels."""
CHOICE_ROWS = 8_000
"""Rows on which the strength is chosen."""
TEMPERATURE_NUMBERS = 20_000_000
"""Scores that are held at once to fit the temperature."""
TRUST = 0.5
"""How far the likelihood of held-out rows is believed, since folds share most of their rows. Chosen on other data than the benchmark's."""
_PATIENCE = 2  # strengths in a row that are hopeless before no larger one is tried
_HOPELESS = 1e-3
BLOCK = 8_192
HALF = 0.5
"""The probability from which a text that may have several labels has one."""


ClassWeight: TypeAlias = Annotated[Literal["none", "balanced"], Option("Balanced: rare labels count as much as frequent ones.")]
Strength: TypeAlias = Annotated[
    float | None, Option("The inverse strength of the regularisation (C). Default: chosen by cross-validation.", min=1e-6, max=1e6)
]


def fit_classifier(
    texts: Sequence[str],
    labels: object,
    encoder: Encoder | None = None,
    *,
    multi: Multi = False,
    class_weight: ClassWeight = "none",
    strength: Strength = None,
    seed: Seed = 0,
    vectors: ArrayLike | None = None,
) -> TextClassifier:
    """Return a classifier that was trained on examples.

    `labels` holds one label per text, a name or a number; with `multi`, a list of them. `vectors` are the texts' own, where they are known.

    >>> import numpy as np
    >>> made = fit_classifier(["a", "b", "c", "d"], ["x", "x", "y", "y"], vectors=np.eye(4))
    >>> made.labels
    ('x', 'y')
    """
    check_options(fit_classifier, locals())
    texts = validate_texts(texts)
    labelled = label_rows(labels, len(texts), multi=multi)
    rows_ND = find_vectors(texts, encoder, vectors)
    fold_N = make_folds(labelled.target_NC, find_repeats(texts, rows_ND, labelled.target_NC).group_N, seed=seed)
    task = _Task(rows_ND, labelled, weigh_rows(labelled.target_NC, class_weight), multi, fold_N)
    chosen = strength or _choose_strength(task, seed)
    folds = _fit_folds(task, chosen, np.arange(len(texts)))
    temperature, held_out = _summarize_folds(task, folds)
    return TextClassifier(
        labelled.names,
        task.fit(np.arange(len(texts)), chosen),
        temperature,
        multi,
        "examples",
        chosen,
        labelled.target_NC.sum(axis=0).astype(np.int64),
        held_out,
        "" if encoder is None else encoder.fingerprint,
        str(getattr(encoder, "name", "")),
    )


def find_vectors(texts: Sequence[str], encoder: Encoder | None, vectors: ArrayLike | None) -> Vectors:
    """Return unit vectors of texts: those handed in, else the encoder's."""
    if vectors is None:
        if encoder is None:
            raise UsageError("neither an encoder nor vectors were given, expected one of them")
        check_encoder(encoder)
        vectors = np.asarray(encoder.encode(list(texts)), dtype=np.float32).reshape(len(texts), -1)
    rows_ND = to_rows(vectors, "vectors")
    if len(rows_ND) != len(texts):
        raise UsageError(f"{count(len(texts), 'text')} and {count(len(rows_ND), 'vector')}, expected one for each")
    return normalize(rows_ND)


def weigh_rows(target_NC: NDArray[np.bool_], class_weight: str) -> NDArray[np.float64]:
    """Return how much each row counts; balanced, the rows of each label count alike, a row with several as its rarest."""
    if class_weight == "none":
        return np.ones(len(target_NC))
    size_C = np.maximum(target_NC.sum(axis=0), 1)
    share_C = target_NC.sum() / (target_NC.shape[1] * size_C)
    weight_N = np.where(target_NC, share_C, 0).max(axis=1)
    return np.asarray(np.where(weight_N > 0, weight_N, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Task:
    rows_ND: Vectors
    labelled: LabelledRows
    weight_N: NDArray[np.float64]
    multi: bool
    fold_N: Ints

    @property
    def folds(self) -> int:
        return int(self.fold_N.max(initial=NEVER)) + 1

    def fit(self, rows: Ints, strength: float, start: LinearHead | None = None) -> LinearHead:
        """Fit some of the rows; the head reads rows that are not centred."""
        part_ND = self.rows_ND[rows]
        mean_D = part_ND.mean(axis=0)
        centred = None if start is None else LinearHead(start.weights_CD, start.bias_C + start.weights_CD @ mean_D)
        problem = LogisticProblem(part_ND - mean_D, self.labelled.target_NC[rows], self.weight_N[rows], self.multi)
        steps = {"steps": MANY_STEPS} if problem.classes > MANY_LABELS else {}
        head = fit_logistic(problem, strength=strength, start=centred, **steps)
        return LinearHead(head.weights_CD, head.bias_C - head.weights_CD @ mean_D)


def _choose_strength(task: _Task, seed: int) -> float:
    """Return the geometric mean of strengths, weighted by the likelihood of held-out rows; larger ones that are hopeless are not tried."""
    if not (task.fold_N != NEVER).any() or task.labelled.target_NC.shape[1] > MANY_LABELS:
        return DEFAULT_STRENGTH
    rows = np.arange(len(task.rows_ND))
    if len(rows) > CHOICE_ROWS:
        kept = np.random.default_rng(seed).permutation(rows)[:CHOICE_ROWS]
        rows = np.union1d(kept, np.flatnonzero(task.fold_N == NEVER))
    losses: list[float] = []
    heads: dict[int, LinearHead] = {}
    target_NC = task.labelled.target_NC
    for strength in STRENGTHS:
        heads = _fit_folds(task, strength, rows, heads)
        looked = [rows[task.fold_N[rows] == fold] for fold in heads]
        scores = np.concatenate([head.scores(task.rows_ND[held]) for held, head in zip(looked, heads.values(), strict=True)])
        target = target_NC[np.concatenate(looked)]
        losses.append(log_loss(scores, target, fit_temperature(scores, target, multi=task.multi), multi=task.multi))
        weights = np.exp(-TRUST * len(target) * (np.array(losses) - min(losses)))
        if (weights[-_PATIENCE:] < _HOPELESS).all():
            break
    return float(np.exp(weights @ np.log(STRENGTHS[: len(weights)]) / weights.sum()))


def _fit_folds(task: _Task, strength: float, rows: Ints, start: dict[int, LinearHead] | None = None) -> dict[int, LinearHead]:
    """Return a head for every fold, fitted on the rows outside of it."""
    fold = task.fold_N[rows]
    used = [each for each in range(task.folds) if (fold == each).any()]
    return {each: task.fit(rows[fold != each], strength, (start or {}).get(each)) for each in used}


def _summarize_folds(task: _Task, folds: dict[int, LinearHead]) -> tuple[float, HeldOut]:
    """Return the temperature, and what every fold's head says of the rows that it has not seen."""
    target_NC = task.labelled.target_NC
    held = np.flatnonzero(task.fold_N != NEVER)
    most = max(1, TEMPERATURE_NUMBERS // target_NC.shape[1])
    looked = held if len(held) <= most else np.sort(np.random.default_rng(0).permutation(held)[:most])
    temperature = fit_temperature(_held_out_scores(task, folds, looked), target_NC[looked], multi=task.multi)
    parts = [
        _summarize(rows, target_NC[rows], _held_out_scores(task, folds, rows), temperature, multi=task.multi)
        for rows in (held[start : start + BLOCK] for start in range(0, len(held), BLOCK))
    ]
    if not parts:
        none, empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        return temperature, HeldOut(none, none, none, empty, empty)
    names = ("row_N", "given_N", "best_N", "confidence_N", "given_probability_N")
    return temperature, HeldOut(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _held_out_scores(task: _Task, folds: dict[int, LinearHead], rows: Ints) -> Matrix:
    scores = np.zeros((len(rows), task.labelled.target_NC.shape[1]), dtype=np.float32)
    for fold, head in folds.items():
        inside = task.fold_N[rows] == fold
        scores[inside] = head.scores(task.rows_ND[rows[inside]])
    return scores


def _summarize(rows: Ints, target_NC: NDArray[np.bool_], scores_NC: Matrix, temperature: float, *, multi: bool) -> HeldOut:
    probability_NC = to_probabilities(scores_NC, temperature, multi=multi)
    if not multi:
        place_N, best_N, given_N = np.arange(len(rows)), probability_NC.argmax(axis=1), target_NC.argmax(axis=1)
        return HeldOut(rows, given_N, best_N, probability_NC[place_N, best_N], probability_NC[place_N, given_N])
    place_N, label_N = np.nonzero(target_NC | (probability_NC >= HALF))
    chance_N, is_given = probability_NC[place_N, label_N], target_NC[place_N, label_N]
    given_N, best_N = np.where(is_given, label_N, NO_LABEL), np.where(chance_N >= HALF, label_N, NO_LABEL)
    return HeldOut(rows[place_N], given_N, best_N, chance_N, chance_N)
