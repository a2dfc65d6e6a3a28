"""Classifiers made of examples: quality, odd classes, hostile labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.analyze.classify.word_encoder import SUBJECTS, WordEncoder, write_texts

from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.doubtful import draw_learning_curve, find_doubtful
from munjang.analyze.classify.fitting import NEVER, find_repeats, fit_classifier, make_folds
from munjang.errors import InputError, UsageError

ENCODER = WordEncoder()


def test_eight_examples_a_label_are_enough_for_simple_texts() -> None:
    made = fit_classifier(*write_texts(8), ENCODER)
    texts, labels = write_texts(50, seed=1)
    found = apply_classifier(made, texts, ENCODER)
    assert made.labels == tuple(sorted(SUBJECTS))
    assert np.mean([each.label == label for each, label in zip(found, labels, strict=True)]) > 0.9
    assert np.allclose(found.probability_NC.sum(axis=1), 1, atol=1e-5)


def test_the_macro_f1_of_held_out_rows_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    held = fit_classifier(*write_texts(12, words=1), ENCODER).held_out
    assert held.macro_f1 == pytest.approx(metrics.f1_score(held.given_N, held.best_N, average="macro"))
    assert held.micro_f1 == pytest.approx(metrics.accuracy_score(held.given_N, held.best_N))


def test_the_same_examples_in_another_order_answer_nearly_alike() -> None:
    texts, labels = write_texts(20)
    new, _ = write_texts(20, seed=3)
    one = apply_classifier(fit_classifier(texts, labels, ENCODER, strength=3.0), new, ENCODER)
    other = apply_classifier(fit_classifier(texts[::-1], labels[::-1], ENCODER, strength=3.0), new, ENCODER)
    assert [each.guess for each in one] == [each.guess for each in other]


def test_a_label_with_one_example_is_learnt_and_never_held_out() -> None:
    texts, labels = write_texts(10)
    made = fit_classifier([*texts, "법원 판결 재판"], [*labels, "법"], ENCODER)
    assert apply_classifier(made, ["재판 판결"], ENCODER)[0].label == "법"
    assert len(texts) not in made.held_out.row_N


def test_examples_that_are_all_the_only_ones_of_their_label_work_without_a_claim() -> None:
    made = fit_classifier(["금리 환율", "야구 축구"], ["경제", "스포츠"], ENCODER)
    assert apply_classifier(made, ["축구 경기"], ENCODER)[0].label == "스포츠"
    assert len(made.held_out) == 0
    with pytest.raises(UsageError, match="no row was held out"):
        apply_classifier(made, ["축구"], ENCODER, precision=0.9)


def test_labels_that_are_numbers_become_their_digits() -> None:
    texts, labels = write_texts(5)
    numbers = [sorted(SUBJECTS).index(label) for label in labels]
    assert fit_classifier(texts, np.array(numbers), ENCODER).labels == ("0", "1", "2")
    assert fit_classifier(texts, [bool(number) for number in numbers], ENCODER).labels == ("false", "true")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a", "a", "a"], "all 3 texts have the same label"),
        (["a", "", "b"], r"labels\[1\] is empty"),
        (["a", None, "b"], r"labels\[1\] is empty"),
        (["a", float("nan"), "b"], r"labels\[1\] is empty"),
        (["a", ["b"], "b"], r"labels\[1\] is a list"),
    ],
)
def test_unusable_labels_are_named(labels: list[object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fit_classifier(["비", "눈", "금리"], labels, ENCODER)


def test_a_missing_text_and_a_missing_label_are_refused() -> None:
    with pytest.raises(UsageError, match=r"texts\[1\] is None"):
        fit_classifier(["비", None], ["a", "b"], ENCODER)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="2 texts and 1 label"):
        fit_classifier(["비", "눈"], ["a"], ENCODER)
    with pytest.raises(UsageError, match="expected a loaded model"):
        fit_classifier(["비", "눈"], ["a", "b"], "ko-en-small")  # type: ignore[arg-type]


def test_equal_texts_with_different_labels_are_found_and_kept() -> None:
    texts, labels = write_texts(10)
    texts, labels = [*texts, "비 온다", "비  온다 "], [*labels, "날씨", "경제"]
    target = np.array([[label == name for name in SUBJECTS] for label in labels])
    repeats = find_repeats(texts, ENCODER.encode(texts), target)
    assert repeats.conflicts == ((30, 31),)
    assert fit_classifier(texts, labels, ENCODER).examples_C.sum() == 32


def test_copies_of_a_text_are_in_one_fold_and_labels_are_spread() -> None:
    texts, labels = write_texts(20)
    texts, labels = texts * 3, labels * 3
    target = np.array([[label == name for name in sorted(SUBJECTS)] for label in labels])
    fold = make_folds(target, find_repeats(texts, ENCODER.encode(texts), target).group_N, seed=0)
    assert (fold[:60] == fold[60:120]).all()
    assert (fold[:60] == fold[120:]).all()
    assert NEVER not in fold
    sizes = np.array([[(target[:, label] & (fold == each)).sum() for label in range(3)] for each in range(fold.max() + 1)])
    assert sizes.max() - sizes.min() <= 3


@pytest.mark.parametrize("classes", [1_200, pytest.param(5_000, marks=pytest.mark.slow)])
def test_many_labels_with_one_example_are_learnt(classes: int) -> None:
    random = np.random.default_rng(0)
    centres = random.standard_normal((classes, 64)).astype(np.float32)
    labels = [f"label {number}" for number in range(classes)]
    made = fit_classifier([f"text {number}" for number in range(classes)], labels, vectors=centres)
    found = apply_classifier(made, ["?"] * 100, vectors=centres[:100] + 0.1 * random.standard_normal((100, 64)))
    assert np.mean([each.label == label for each, label in zip(found, labels[:100], strict=True)]) > 0.95


def write_pairs(each: int, seed: int) -> tuple[list[str], list[list[str]]]:
    texts, labels = write_texts(each, seed=seed)
    pairs = [f"{one} {other}" for one, other in itertools.pairwise(texts)]
    return [*pairs, "오늘 내일 서울"], [*(sorted({one, other}) for one, other in itertools.pairwise(labels)), []]


def test_a_text_may_have_several_labels_or_none() -> None:
    made = fit_classifier(*write_pairs(30, seed=0), ENCODER, multi=True, strength=10.0)
    texts, labels = write_pairs(20, seed=1)
    found = apply_classifier(made, texts, ENCODER)
    assert np.mean([set(each.labels) == set(label) for each, label in zip(found, labels, strict=True)]) > 0.75
    assert {len(each.labels) for each in found} >= {1, 2}
    assert all(each.runner_up not in each.labels for each in found)
    assert all((each.runner_up == "") == (len(each.labels) == 3) for each in found)
    assert all(each.runner_up != each.guess for each in found)
    assert apply_classifier(made, texts, ENCODER, precision=0.95).answered < found.answered
    assert 0.5 < made.held_out.macro_f1 <= 1
    with pytest.raises(InputError, match="expected a list of labels"):
        fit_classifier(["비", "눈"], ["a", "b"], ENCODER, multi=True)


def test_balanced_labels_count_alike() -> None:
    texts, labels = write_texts(40, words=1)
    rare = [row for row, label in enumerate(labels) if label != "날씨" or row % 10 == 0]
    few = [texts[row] for row in rare], [labels[row] for row in rare]
    new, gold = write_texts(60, seed=5, words=1)

    def recall(made: object) -> float:
        found = apply_classifier(made, new, ENCODER)  # type: ignore[arg-type]
        return float(np.mean([each.guess == "날씨" for each, label in zip(found, gold, strict=True) if label == "날씨"]))

    assert recall(fit_classifier(*few, ENCODER, class_weight="balanced", strength=1.0)) > recall(
        fit_classifier(*few, ENCODER, strength=1.0)
    )


def test_swapped_labels_are_the_most_doubtful() -> None:
    texts, labels = write_texts(40)
    swapped = {3: "날씨", 50: "경제", 77: "스포츠"}
    swapped = {row: label if labels[row] != label else next(each for each in SUBJECTS if each != label) for row, label in swapped.items()}
    noisy = [swapped.get(row, label) for row, label in enumerate(labels)]
    doubtful = find_doubtful(fit_classifier(texts, noisy, ENCODER), top=3)
    assert {each.row for each in doubtful} == set(swapped)
    assert all(each.suggested == labels[each.row] and each.given == noisy[each.row] for each in doubtful)
    assert [each.doubt for each in doubtful] == sorted((each.doubt for each in doubtful), reverse=True)


def test_a_learning_curve_rises_and_ends_where_examples_do() -> None:
    points = list(draw_learning_curve(*write_texts(20, words=1), ENCODER, sizes=[1, 8, 500]))
    assert [point.examples for point in points] == [1, 8]
    assert points[0].macro_f1 < points[1].macro_f1
    several = list(draw_learning_curve(*write_pairs(30, seed=0), ENCODER, sizes=[1, 16], multi=True))
    assert 0 < several[0].macro_f1 < several[1].macro_f1 <= 1
    copies = [f"같은 글 {n // 20}" for n in range(60)]  # whoever learnt one copy would know the others
    drawn = list(draw_learning_curve(copies, [n % 2 for n in range(60)], ENCODER, sizes=[2]))
    assert drawn[0].accuracy < 0.9
    with pytest.raises(UsageError, match="at least 1"):
        list(draw_learning_curve(["비", "눈"], ["a", "b"], ENCODER, sizes=[0]))
