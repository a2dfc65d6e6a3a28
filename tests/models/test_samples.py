"""The sample collection is whole, balanced and varied."""

from __future__ import annotations

import re
from collections import Counter

from munjang.models.samples import DEMO_QUERIES, load_samples

SAMPLES = load_samples()


def test_every_subject_has_as_much_korean_as_english() -> None:
    counts = Counter((sample.subject, sample.language) for sample in SAMPLES)
    assert len(SAMPLES) >= 240
    assert len({subject for subject, _ in counts}) == 24
    assert set(counts.values()) == {5}


def test_ids_and_texts_are_unique() -> None:
    assert len({sample.id for sample in SAMPLES}) == len(SAMPLES)
    assert len({sample.text for sample in SAMPLES}) == len(SAMPLES)


def test_the_language_is_the_one_that_is_named() -> None:
    for sample in SAMPLES:
        assert bool(re.search("[가-힣]", sample.text)) == (sample.language == "ko"), sample.id


def test_sentences_are_of_a_sentence_s_length_and_clean() -> None:
    for sample in SAMPLES:
        assert 5 <= len(sample.text.split()) <= 25, sample.id
        assert sample.text == sample.text.strip()
        assert sample.text.isprintable()


def test_both_languages_ask_questions_and_make_headlines() -> None:
    for language in ("ko", "en"):
        texts = [sample.text for sample in SAMPLES if sample.language == language]
        assert sum(text.endswith("?") for text in texts) >= 20
        assert sum(text[-1] not in ".?!" for text in texts) >= 5


def test_demo_queries_ask_about_subjects_of_the_collection_in_other_words() -> None:
    subjects = {sample.subject for sample in SAMPLES}
    assert {query.language for query in DEMO_QUERIES} == {"ko", "en"}
    for query in DEMO_QUERIES:
        assert query.subject in subjects
        assert all(query.text not in sample.text for sample in SAMPLES)
