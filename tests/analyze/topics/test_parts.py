"""Each small part against an authority or a law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from tests.analyze.topics.conftest import Collection

from munjang.analyze.topics.assign import link_by_average
from munjang.analyze.topics.describe import choose_words, count_topics, weigh_class_words
from munjang.analyze.topics.groups import (
    build_neighbour_graph,
    detect_communities,
    drop_small_groups,
    fit_projection,
    join_groups,
    normalize_rows,
    run_kmeans,
)
from munjang.analyze.topics.model import find_outlier_floors
from munjang.analyze.topics.topic_words import compute_diversity, compute_npmi, join_bags, make_bag

documents = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=8)


@given(documents, documents)
def test_a_joined_bag_is_the_bag_of_all_documents(first: list[list[str]], second: list[list[str]]) -> None:
    both, at_once = join_bags(make_bag(first), make_bag(second)), make_bag(first + second)
    assert both.vocabulary == at_once.vocabulary
    assert (both.starts == at_once.starts).all()
    assert both.totals().tolist() == at_once.totals().tolist()


@given(documents, st.randoms(use_true_random=False))
def test_chosen_documents_keep_their_words(words: list[list[str]], random: object) -> None:
    rows = np.array([random.randrange(len(words)) for _ in range(4)])  # type: ignore[attr-defined]
    bag = make_bag(words).select(rows)
    for place, row in enumerate(rows):
        held = slice(bag.starts[place], bag.starts[place + 1])
        found = {bag.vocabulary[t]: int(c) for t, c in zip(bag.terms[held], bag.counts[held], strict=True)}
        assert found == {word: words[row].count(word) for word in words[row]}


@given(documents)
def test_npmi_is_what_counting_by_hand_gives(words: list[list[str]]) -> None:
    bag, topic = make_bag(words), ["a", "b", "c"]
    known = [word for word in topic if any(word in each for each in words)]
    expected = []
    for i, a in enumerate(known):
        for b in known[:i]:
            held = [(a in each, b in each) for each in words]
            pa, pb, both = (sum(each) / len(words) for each in ([x for x, _ in held], [y for _, y in held], [x and y for x, y in held]))
            expected.append(-1 if both == 0 else 1 if both == 1 else math.log(both / pa / pb) / -math.log(both))
    assert compute_npmi([topic], bag)[0] == pytest.approx(np.mean(expected) if expected else 0.0, abs=1e-6)


def test_diversity_of_nothing_is_zero() -> None:
    assert compute_diversity([]) == 0


def test_class_tfidf_is_the_published_formula() -> None:
    bag = make_bag([["a", "a", "b"], ["b", "c"], ["c", "c", "c"]])
    counts = count_topics(bag, np.array([0, 0, 1]), 2)
    assert counts.tolist() == [[2, 2, 1], [0, 0, 3]]
    expected = counts / np.array([[5], [3]]) * np.log(1 + 4 / counts.sum(axis=0))
    assert np.allclose(weigh_class_words(counts), expected)


def test_diverse_words_pass_over_a_word_that_only_repeats_another() -> None:
    members = make_bag([["a", "b"], ["a", "b"], ["c"]])
    weights = np.array([1.0, 0.99, 0.6])
    assert [word for word, _ in choose_words(weights, members, count=2, diversity=0.0)] == ["a", "b"]
    assert [word for word, _ in choose_words(weights, members, count=2, diversity=0.6)] == ["a", "c"]


def test_the_projection_spans_what_scikit_learn_finds(collection: Collection) -> None:
    unit = collection.vectors / np.linalg.norm(collection.vectors, axis=1, keepdims=True)
    ours = fit_projection(collection.vectors, 5)
    theirs = PCA(5).fit(unit)
    assert np.abs(np.abs((theirs.components_ * ours.axes_DR.T).sum(axis=1)) - 1).max() < 1e-4
    assert np.allclose(
        ours.apply(collection.vectors), normalize_rows(theirs.transform(unit) @ (theirs.components_ @ ours.axes_DR)), atol=1e-3
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.integers(0, 1000))
def test_the_tree_is_scipys_average_linkage(count: int, seed: int) -> None:
    rows = normalize_rows(np.random.default_rng(seed).standard_normal((count, 5)).astype(np.float32))
    theirs = linkage(np.clip((1 - rows.astype(float) @ rows.T.astype(float))[np.triu_indices(count, 1)], 0, None), "average")
    ours = link_by_average(rows)
    assert np.allclose([join.distance for join in ours], theirs[:, 2], atol=1e-6)
    assert [(join.a, join.b) for join in ours] == [tuple(sorted(map(int, row[:2]))) for row in theirs]


def test_communities_are_the_cliques_of_a_graph_of_cliques() -> None:
    graph = [{other: 1.0 for other in range(5 * (node // 5), 5 * (node // 5) + 5) if other != node} for node in range(20)]
    for clique in range(3):
        graph[5 * clique][5 * clique + 5] = graph[5 * clique + 5][5 * clique] = 0.1
    assert detect_communities(graph).tolist() == [node // 5 for node in range(20)]


def test_neighbours_are_tied_both_ways(collection: Collection) -> None:
    graph = build_neighbour_graph(normalize_rows(collection.vectors), neighbours=5)
    assert all(graph[other][node] == weight for node, edges in enumerate(graph) for other, weight in edges.items())
    assert min(len(edges) for edges in graph) >= 5


def test_kmeans_gives_equal_rows_one_group(collection: Collection) -> None:
    rows = normalize_rows(np.repeat(collection.vectors[[0, 40, 80]], 4, axis=0))
    labels = run_kmeans(rows, 10)
    assert len(set(labels.tolist())) == 3
    assert all(len(set(labels[start : start + 4].tolist())) == 1 for start in (0, 4, 8))


def test_small_groups_dissolve_and_close_ones_join() -> None:
    assert drop_small_groups(np.array([0, 0, 0, 1, 2, 2]), 2).tolist() == [0, 0, 0, -1, 1, 1]
    rows = normalize_rows(np.array([[1, 0], [0.9, 0.1], [0, 1]], dtype=np.float32))
    assert join_groups(rows, np.array([0, 1, 2]), 2).tolist() == [0, 0, 1]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=50), st.sampled_from([0.0, 0.05, 0.2, 1.0]))
def test_floors_keep_outliers_within_their_share(scores: list[float], share: float) -> None:
    score_N = np.array(scores, dtype=np.float32)
    component_N = np.arange(len(scores)) % 2
    floors = find_outlier_floors(component_N, score_N, 2, share=share)
    assert (score_N < floors[component_N]).sum() <= share * len(scores)


def test_when_the_rounds_are_used_up_every_row_still_has_its_group(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = normalize_rows(collection.vectors)
    settled = run_kmeans(rows, 4)
    monkeypatch.setattr("munjang.analyze.topics.groups.ROUNDS", 1)
    assert adjusted_rand_score(settled, run_kmeans(rows, 4)) > 0.5
    monkeypatch.setattr("munjang.analyze.topics.groups._ROUNDS", 1)
    graph = build_neighbour_graph(rows)
    assert adjusted_rand_score(collection.truth, detect_communities(graph)) > 0.5
