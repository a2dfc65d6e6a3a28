from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.metrics import adjusted_rand_score
from tests.analyze.topics.conftest import made

from munjang.analyze.contextual import WordBatch, compute_gradients, count_densely, fit_contextual, make_weights
from munjang.analyze.topics.assign import assign_topics
from munjang.analyze.topics.edit import merge_topics, split_topic, update_topics
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import TopicModel
from munjang.analyze.topics.saving import load_topics, save_topics
from munjang.analyze.topics.topic_words import bag_words, compute_npmi
from munjang.errors import InputError, UsageError
from munjang.text.tagging import choose_tagger

PLAIN = choose_tagger("plain")
COLLECTION = made(40)


@pytest.fixture(scope="module")
def model() -> TopicModel:
    settings = {"method": "contextual", "topics": 4}
    return fit_topics(COLLECTION.texts, vectors=COLLECTION.vectors, **settings, by=PLAIN)


def test_the_gradients_are_the_slopes_of_the_loss() -> None:
    random = np.random.default_rng(0)
    weights = {name: array.astype(np.float64) for name, array in make_weights(7, 5, 3, 6, random).items()}
    batch = WordBatch(
        random.standard_normal((8, 7)),
        random.integers(0, 4, (8, 6)).astype(np.float64),
        np.log(np.arange(1, 7) / 21),
        random.standard_normal((8, 3)),
        (random.random((8, 5)) > 0.2) / 0.8,
    )
    _, found, _ = compute_gradients(weights, batch)  # type: ignore[arg-type]
    for name, array in weights.items():
        for _ in range(6):
            place = tuple(int(random.integers(side)) for side in array.shape)
            kept = array[place]
            losses = []
            for step in (1e-5, -1e-5):
                array[place] = kept + step
                losses.append(compute_gradients(weights, batch)[0])  # type: ignore[arg-type]
            array[place] = kept
            assert found[name][place] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-3, abs=1e-5)


def test_it_finds_the_topics_that_are_there(model: TopicModel) -> None:
    assert adjusted_rand_score(COLLECTION.truth, model.labels) > 0.8
    assert model.outliers == 0


def test_its_words_hang_together_no_less_than_those_of_lda(model: TopicModel) -> None:
    bag = bag_words(COLLECTION.texts, PLAIN)
    words = sorted(bag.vocabulary)
    lda = LatentDirichletAllocation(4, random_state=0).fit(count_densely(bag, words))
    theirs = [[words[place] for place in np.argsort(-row)[:10]] for row in lda.components_]
    assert model.coherence >= np.mean(compute_npmi(theirs, bag))


def test_a_word_of_every_topic_is_no_first_word_of_any() -> None:
    texts = [f"{text} everywhere everywhere" if row % 2 else text for row, text in enumerate(COLLECTION.texts)]
    bag = bag_words(texts, PLAIN)
    assert bag.totals()[bag.vocabulary.index("everywhere")] == bag.totals().max()
    weights_KV = fit_contextual(bag, COLLECTION.vectors, topics=4, steps=200).word_weights(bag.vocabulary)
    assert "everywhere" not in {bag.vocabulary[place] for row_V in weights_KV for place in np.argsort(-row_V)[:3]}


def test_vectors_alone_are_enough_as_for_another_language(model: TopicModel) -> None:
    foreign = made(15, seed=8)
    found = assign_topics(model, [f"낯선 말 {row}" for row in range(60)], vectors=foreign.vectors).labels
    assert adjusted_rand_score(foreign.truth, found) > 0.8


def test_it_is_saved_loaded_and_merged_like_any_other(model: TopicModel, tmp_path: Path) -> None:
    save_topics(model, tmp_path / "model")
    loaded = load_topics(tmp_path / "model")
    unknown = [f"{text} again" for text in COLLECTION.texts]
    assert (assign_topics(loaded, unknown, vectors=COLLECTION.vectors).labels == model.labels).all()
    assert loaded.topics == model.topics
    merged = merge_topics(loaded, [[0, 1]])
    assert (merged.labels == np.where(model.labels == 1, 0, model.labels)).all()
    with pytest.raises(UsageError, match="contextual"):
        split_topic(model, 0)


def test_equal_seeds_give_equal_models_and_too_little_text_is_refused() -> None:
    bag = bag_words(COLLECTION.texts, PLAIN)
    a, b = (fit_contextual(bag, COLLECTION.vectors, topics=3, steps=20) for _ in range(2))
    assert all((a.weights[name] == b.weights[name]).all() for name in a.weights)
    assert np.allclose(a.mixtures(COLLECTION.vectors, bag).sum(axis=1), 1, atol=1e-5)
    with pytest.raises(InputError, match="too few"):
        fit_topics(["rain"], vectors=[[1.0, 2.0]], method="contextual", by=PLAIN)


def test_it_takes_new_documents_and_places_the_old_as_before(model: TopicModel) -> None:
    new = made(10, seed=3)
    grown = update_topics(model, new.texts, vectors=new.vectors)
    assert len(grown.documents) == len(COLLECTION.texts) + 40
    assert (grown.labels[: len(COLLECTION.texts)] == model.labels).all()
    assert adjusted_rand_score(new.truth, grown.labels[-40:]) > 0.8


def test_small_batches_walk_through_every_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.analyze.contextual.BATCH", 32)
    settings = {"method": "contextual", "topics": 4}
    found = fit_topics(COLLECTION.texts, vectors=COLLECTION.vectors, **settings, by=PLAIN)
    assert adjusted_rand_score(COLLECTION.truth, found.labels) > 0.8
