"""Labels without examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.analyze.classify.word_encoder import SUBJECTS, WordEncoder, write_texts

from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.labels import Label
from munjang.analyze.classify.saving import load_classifier, save_classifier
from munjang.analyze.classify.zero_shot import classify_by_entailment, classify_texts, make_classifier, write_hypothesis
from munjang.errors import UsageError
from munjang.vectors.similarity import normalize

ENCODER = WordEncoder()
LABELS = [Label(name, words=tuple(words[:3])) for name, words in SUBJECTS.items()]


def accuracy(found: Sequence[object], labels: Sequence[str]) -> float:
    return float(np.mean([each.label == label for each, label in zip(found, labels, strict=True)]))  # type: ignore[attr-defined]


def test_words_of_labels_find_their_texts_and_rounds_help() -> None:
    texts, labels = write_texts(60)
    without = accuracy(classify_texts(texts, LABELS, ENCODER, rounds=0), labels)
    found = classify_texts(texts, LABELS, ENCODER)
    assert accuracy(found, labels) > max(0.75, without)
    assert np.allclose(found.probability_NC.sum(axis=1), 1, atol=1e-5)


def test_a_label_that_is_close_to_everything_does_not_win_everywhere() -> None:
    texts, labels = write_texts(60)
    generic = [Label("전체", words=("오늘", "내일", "어제", "다시", "크게", "조금", "올해", "지난해", "전국", "서울")), *LABELS]
    plain = ENCODER.encode(texts) @ make_classifier(generic, ENCODER, rounds=0, vectors=np.zeros((0, ENCODER.dimension))).head.weights_CD.T
    assert (plain.argmax(axis=1) == 0).mean() > 0.4
    found = classify_texts(texts, generic, ENCODER)
    assert np.mean([each.label == "전체" for each in found]) < 0.4
    assert accuracy(found, labels) > 0.6


def test_many_texts_teach_a_head_of_their_own_that_is_as_sure_as_the_labels_were() -> None:
    texts, labels = write_texts(200)
    vectors = normalize(ENCODER.encode(texts))
    moved = make_classifier(LABELS, ENCODER, vectors=vectors, multi=True)  # several labels: by the moved labels alone
    learnt = make_classifier(LABELS, ENCODER, vectors=vectors)
    right = [np.mean(np.array(made.labels)[made.head.scores(vectors).argmax(axis=1)] == np.array(labels)) for made in (moved, learnt)]
    assert right[1] > right[0]
    margins = [np.sort(made.head.scores(vectors), axis=1) @ [*[0] * (len(LABELS) - 2), -1, 1] for made in (moved, learnt)]
    assert margins[1].mean() == pytest.approx(margins[0].mean(), rel=1e-3)


def test_many_texts_do_not_carry_a_label_away_from_its_name() -> None:
    texts, _ = write_texts(60)
    vectors = normalize(ENCODER.encode(texts))
    names = normalize(ENCODER.encode([name for label in LABELS for name in (label.name, *label.words)]))
    names = normalize(names.reshape(len(LABELS), -1, names.shape[1]).mean(axis=1))
    kept = []
    for copies in (5, 50):
        head = make_classifier(LABELS, ENCODER, vectors=np.tile(vectors, (copies, 1)), multi=True).head
        kept.append((normalize(head.weights_CD) * names).sum(axis=1))
    assert kept[1] == pytest.approx(kept[0], abs=0.01)


def test_one_text_alone_and_no_text_at_all_are_answered() -> None:
    assert classify_texts(["금리 환율 오늘"], LABELS, ENCODER)[0].label == "경제"
    assert len(classify_texts([], LABELS, ENCODER)) == 0


def test_a_classifier_made_of_labels_is_saved_and_applied_as_any_other(tmp_path: object) -> None:
    texts, _ = write_texts(20)
    made = make_classifier(LABELS, ENCODER, vectors=ENCODER.encode(texts))
    save_classifier(made, f"{tmp_path}/zero")
    loaded = apply_classifier(load_classifier(f"{tmp_path}/zero"), texts, ENCODER)
    assert np.array_equal(loaded.probability_NC, classify_texts(texts, LABELS, ENCODER).probability_NC)
    with pytest.raises(UsageError, match="no row was held out"):
        apply_classifier(made, texts, ENCODER, precision=0.9)


@pytest.mark.parametrize(
    ("labels", "words"),
    [(["경제"], "at least two"), (["경제", "경제"], "given twice"), (["경제", " "], "is empty"), ("경제,정치", "is one text")],
)
def test_unusable_labels_are_refused(labels: object, words: str) -> None:
    with pytest.raises(Exception, match=words):
        classify_texts(["비"], labels, ENCODER)


class WordScorer:
    """Entails a sentence as far as the text shares a subject with the label in it."""

    labels = ("contradiction", "entailment", "neutral")

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> np.ndarray:
        rows = []
        for text, sentence in pairs:
            subject = next(name for name in SUBJECTS if name in sentence)
            rows.append([0.0, 3.0 * len(set(text.split()) & set(SUBJECTS[subject])), 1.0])
        return np.array(rows, dtype=np.float32)


def test_a_scorer_of_inference_labels_texts() -> None:
    texts, labels = write_texts(10)
    assert accuracy(classify_by_entailment(texts, list(SUBJECTS), WordScorer()), labels) == 1.0
    assert write_hypothesis("경제", "주제: {}") == "주제: 경제"
    with pytest.raises(UsageError, match="no {}"):
        classify_by_entailment(texts, list(SUBJECTS), WordScorer(), template="주제")
    with pytest.raises(UsageError, match="expected a loaded model"):
        classify_by_entailment(texts, list(SUBJECTS), "ko-en-cross")  # type: ignore[arg-type]
