"""Topics of documents that are read in blocks, beside `fit_topics`, which holds all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from munjang import fit_topics, load_topics, merge_topics, rename_topic, save_topics, set_outliers, topics_over_time
from munjang.analyze.topics.assign import assign_topics
from munjang.analyze.topics.fitting import count_different
from munjang.analyze.topics.streaming import fit_topics_stream
from munjang.analyze.topics.topic_words import WordIndex, bag_words
from munjang.errors import InputError, UsageError
from munjang.text.tagging import choose_tagger

SUBJECTS = (
    "snow storm forecast wind ice",
    "train station ticket platform rail",
    "bread soup butter oven cheese",
    "law court judge vote tax",
)


def make_documents(count: int = 1_200, *, seed: int = 0) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts of four subjects in Latin letters, vectors around four centres, and the subjects."""
    random = np.random.default_rng(seed)
    subject = random.integers(0, 4, count)
    texts = [
        " ".join(random.choice(SUBJECTS[each].split(), 4)) + f" {place % (count - 100)}" for place, each in enumerate(subject.tolist())
    ]
    centre = random.standard_normal((4, 16))
    of_text = {text: centre[each] + random.standard_normal(16) * 0.3 for text, each in zip(texts, subject.tolist(), strict=True)}
    return texts, np.array([of_text[text] for text in texts], dtype=np.float32), subject


def in_blocks(texts: list[str], vectors: np.ndarray, size: int = 97) -> Callable:
    return lambda: ((texts[at : at + size], vectors[at : at + size]) for at in range(0, len(texts), size))


def test_a_sample_that_holds_all_finds_what_memory_finds() -> None:
    texts, vectors, subject = make_documents()
    held = fit_topics(texts, vectors=vectors, topics=4)
    found = fit_topics_stream(in_blocks(texts, vectors), partial(fit_topics, topics=4), sample=2_000)
    assert found.size == len(texts)
    assert sum(topic.size for topic in found.topics) + found.outliers == len(texts)
    labels = assign_topics(found, texts, vectors=vectors).labels
    assert normalized_mutual_info_score(held.labels, labels) > 0.97
    assert normalized_mutual_info_score(subject, labels) > 0.94
    sizes = {topic.id: topic.size for topic in found.topics}
    assert sizes == {topic: int((labels == topic).sum()) for topic in sizes}
    assert [topic.size for topic in found.topics] == sorted(sizes.values(), reverse=True)
    assert found.outliers <= 0.1 * len(texts)


def test_words_are_counted_in_all_documents() -> None:
    """One block or many, sample or all: the counts are those of a plain count."""
    texts, vectors, _ = make_documents()
    found = fit_topics_stream(in_blocks(texts, vectors), partial(fit_topics, topics=4, outliers=0.0), sample=200)
    labels = assign_topics(found, texts, vectors=vectors).labels
    words = found.streamed.words
    for topic, row in zip(found.topic_P.tolist(), range(len(words)), strict=True):
        own = " ".join(text for text, label in zip(texts, labels.tolist(), strict=True) if label == topic).split()
        place = slice(words.starts[row], words.starts[row + 1])
        counted = {words.vocabulary[term]: count for term, count in zip(words.terms[place], words.counts[place], strict=True)}
        assert counted == {word: own.count(word) for word in words.vocabulary if word in own}


def test_the_order_of_documents_changes_nothing_but_numbers_of_rows() -> None:
    texts, vectors, _ = make_documents()
    first = fit_topics_stream(in_blocks(texts, vectors), sample=300)
    order = np.random.default_rng(5).permutation(len(texts))
    again = fit_topics_stream(in_blocks([texts[row] for row in order], vectors[order], size=211), sample=300)
    assert [topic.words for topic in again.topics] == [topic.words for topic in first.topics]
    assert [topic.size for topic in again.topics] == [topic.size for topic in first.topics]
    assert again.documents.excerpts == first.documents.excerpts
    labels = [assign_topics(model, texts, vectors=vectors).labels.tolist() for model in (first, again)]
    assert labels[0] == labels[1]
    for model, at in ((first, np.arange(len(texts))), (again, order)):
        row = model.topics[0].documents[0]
        assert texts[at[model.row_number(row) - 1]] == model.documents.excerpts[row]


def test_saved_topics_keep_the_figures_of_all_documents(tmp_path: Path) -> None:
    texts, vectors, _ = make_documents()
    found = fit_topics_stream(in_blocks(texts, vectors), sample=200)
    save_topics(found, tmp_path / "model")
    again = load_topics(tmp_path / "model")
    assert (again.size, again.outliers, again.topics) == (found.size, found.outliers, found.topics)
    assert rename_topic(again, 0, "first").topics[0].words == found.topics[0].words
    merged = merge_topics(again, [[0, 1]])
    assert merged.size == len(texts)
    assert merged.topic(0).size == found.topic(0).size + found.topic(1).size
    for refused in (lambda: set_outliers(again, 0.0), lambda: topics_over_time(again, [2020] * len(texts))):
        with pytest.raises(UsageError, match="of which the model keeps 200"):
            refused()


def test_no_document_is_refused() -> None:
    with pytest.raises(InputError, match="no text"):
        fit_topics_stream(lambda: iter(()))


def test_a_word_index_counts_as_a_bag_does() -> None:
    """Korean compounds too: what a word holds does not depend on the other words of a block."""
    pytest.importorskip("kiwipiepy")
    tagger = choose_tagger()
    texts = ["부가가치세를 내는 회사의 세금", "대통령 선거와 국회의원선거", "세금과 선거, 대통령의 부가가치세", "겨울 눈과 비"] * 3
    bag = bag_words(texts, tagger)
    index = WordIndex(bag.vocabulary, tagger)
    terms, lengths = zip(*(index.read([text]) for text in texts), strict=True)
    assert [int(length[0]) for length in lengths] == [int(bag.select(np.array([row])).counts.sum()) for row in range(len(bag))]
    whole, _ = WordIndex(bag.vocabulary, tagger).read(texts)
    assert np.concatenate(terms).tolist() == whole.tolist()
    assert np.bincount(whole, minlength=len(bag.vocabulary)).tolist() == bag.totals().tolist()
    assert len(count_different(texts)[0]) == 4
