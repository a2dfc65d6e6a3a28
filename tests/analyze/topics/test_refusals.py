"""What cannot be meant is refused in words, and odd collections have an answer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.analyze.topics.conftest import DIMENSION, WORDS, Collection, made
from tests.analyze.topics.settings import topic_settings

from munjang.analyze.topics.assign import assign_topics
from munjang.analyze.topics.describe import topics_over_time, topics_per_class
from munjang.analyze.topics.edit import merge_topics, reduce_topics, rename_topic, set_outliers, split_topic
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.groups import build_neighbour_graph, compute_centres, find_groups
from munjang.analyze.topics.model import Prototypes, TopicModel
from munjang.analyze.topics.saving import MAIN, load_topics, save_topics
from munjang.errors import DamagedFile, InputError, UsageError
from munjang.text.tagging import choose_tagger

PLAIN = choose_tagger("plain")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: merge_topics(model, [[0, 1], [1, 2]]), "merge: a topic occurs in more than one group, expected each topic once"),
        (lambda model: reduce_topics(model, 0), "topics=0, expected 1 or more"),
        (lambda model: split_topic(model, 0, 1), "parts is 1, expected at least 2"),
        (lambda model: split_topic(model, 0, 500), "split: topic 0 has too few different documents for 500 parts"),
        (lambda model: rename_topic(model, 0, " \n"), "the name is empty, expected a name for the topic"),
        (lambda model: topics_over_time(model, [2020] * len(model.documents), periods=0), "periods=0, expected 1 or more"),
        (lambda model: topics_over_time(model, [2020, 2021]), "2 values for 120 documents, expected one for each"),
        (lambda model: topics_per_class(model, ["a"]), "1 values for 120 documents, expected one for each"),
        (lambda model: assign_topics(model, ["rain"]), "neither vectors nor an encoder was given, expected one of them"),
        (
            lambda model: assign_topics(model, ["rain", "snow"], vectors=np.ones((3, DIMENSION))),
            "vectors has 3 rows for 2 texts, expected one row for each text",
        ),
    ],
    ids=["merge", "fewer", "one part", "many parts", "name", "periods", "times", "classes", "no vectors", "rows"],
)
def test_what_a_model_cannot_do_is_refused(model: TopicModel, change: Callable[[TopicModel], Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{words}$"):
        change(model)


def test_another_encoder_than_the_topics_were_found_with_is_refused(model: TopicModel) -> None:
    known, other = replace(model, encoder="a" * 64), SimpleNamespace(fingerprint="b" * 64, encode=lambda texts: texts)
    with pytest.raises(UsageError, match=r"the encoder is not the one that the topics were found with\n  load that one, or fit"):
        assign_topics(known, ["rain"], encoder=other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guides": (("rain",), ())}, "guides: a group of seed words is empty, expected at least one word in each"),
        ({"method": "lda"}, "method is 'lda', expected one of graph, kmeans, hdbscan, contextual"),
        ({"reduction": "t-sne"}, "reduction is 't-sne', expected one of pca"),
    ],
    ids=["guides", "method", "reduction"],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fit_topics(["rain"], vectors=[[1.0, 2.0]], **options)


def test_one_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(UsageError, match="texts is one text, expected a list of texts"):
        fit_topics("rain and snow", vectors=np.ones((13, 4)))


@pytest.mark.parametrize("options", [{"guides": (("rain",),)}, {"labels": ("weather",)}], ids=["guides", "labels"])
def test_a_contextual_model_takes_no_anchors(collection: Collection, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"takes neither labels nor seed words\n  use the method graph, kmeans or hdbscan"):
        fit_topics(collection.texts, vectors=collection.vectors, method="contextual", **options, by=PLAIN)


def test_seed_words_that_take_every_document_leave_no_other_topic() -> None:
    given = made(20, kinds=("weather", "law"))
    found = fit_topics(given.texts, vectors=given.vectors, guides=(WORDS["weather"], WORDS["law"]), by=PLAIN)
    assert len(found.topics) == 2
    kept = found.labels >= 0
    assert len({(int(label), int(kind)) for label, kind in zip(found.labels[kept], given.truth[kept], strict=True)}) == 2


def test_a_prototype_that_no_document_is_nearest_to_makes_no_topic(model: TopicModel) -> None:
    assert isinstance(model.assigner, Prototypes)
    centres_PR = model.assigner.centres_PR
    more = replace(
        model,
        assigner=replace(model.assigner, centres_PR=np.concatenate([centres_PR, centres_PR[:1]])),  # of two equal ones the first is taken
        topic_P=np.append(model.topic_P, 99),
        floors_P=np.append(model.floors_P, 0.0),
    )
    found = set_outliers(more, model.settings.outliers)
    assert 99 not in found.topic_P
    assert [topic.id for topic in found.topics] == [topic.id for topic in model.topics]
    assert found.labels.tolist() == set_outliers(model, model.settings.outliers).labels.tolist()


def test_groups_that_are_all_too_small_are_one_topic() -> None:
    alone = np.eye(40, dtype=np.float32)  # each is as far from any other
    assert find_groups(alone, topic_settings(method="hdbscan")).tolist() == [0] * 40


def test_groups_without_rows_have_no_centre_and_one_row_no_neighbour() -> None:
    rows = np.eye(3, dtype=np.float32)
    assert compute_centres(rows, np.full(3, -1), 2).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert compute_centres(rows, np.array([1, 1, -1]), 2).round(3).tolist() == pytest.approx(np.array([[0, 0, 0], [0.707, 0.707, 0]]))
    assert build_neighbour_graph(rows[:1]) == [{}]


def test_times_that_are_no_years_are_cut_into_equal_stretches(model: TopicModel) -> None:
    count = len(model.documents)
    slices = topics_over_time(model, np.linspace(0.5, 10.5, count).tolist(), periods=4)
    assert slices.names == ("0.5", "3", "5.5", "8")
    assert slices.counts_TK.sum() == (model.labels >= 0).sum()
    once = topics_over_time(model, [0.5] * count, periods=4)
    assert once.names == ("0.5",)
    assert once.counts_TK.sum() == (model.labels >= 0).sum()


@pytest.mark.parametrize("time", [float("nan"), float("inf"), True, None], ids=str)
def test_a_number_that_is_no_time_is_refused_with_its_row(model: TopicModel, time: object) -> None:
    with pytest.raises(InputError, match=f"^row 2: '{time}' is no time, expected a date such as 2024-07-01, a year or a number"):
        topics_over_time(model, [0.5, time, *[1.5] * (len(model.documents) - 2)])


@pytest.fixture
def saved(model: TopicModel, tmp_path: Path) -> Path:
    save_topics(model, tmp_path / "model")
    return tmp_path / "model"


def rewritten(folder: Path, **changed: Any) -> None:
    """Change facts of a saved model as a stranger would, with the right checksum."""
    facts = json.loads((folder / MAIN).read_bytes()) | changed
    facts.pop("checksum")
    from munjang.analyze.saved_folder import to_json

    (folder / MAIN).write_bytes(to_json({**facts, "checksum": hashlib.sha256(to_json(facts)).hexdigest()}))


def test_a_file_in_the_place_of_the_folder_is_kept(model: TopicModel, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    with pytest.raises(UsageError, match="model: is a file, expected a folder to save the topics in"):
        save_topics(model, tmp_path / "model")
    assert (tmp_path / "model").read_text() == "mine"


def test_a_model_that_names_files_elsewhere_leads_nowhere(saved: Path) -> None:
    rewritten(saved, files=["../precious", "../../etc/passwd"])
    with pytest.raises(DamagedFile, match="topics.json: names a file that is none of its own"):
        load_topics(saved)


def test_a_part_that_is_gone_is_named(saved: Path) -> None:
    [arrays] = saved.glob("arrays-*")
    arrays.unlink()
    with pytest.raises(DamagedFile, match=rf"{arrays.name}: is missing\n  fit the topics again"):
        load_topics(saved)


def test_a_part_that_is_far_too_large_is_not_read(saved: Path) -> None:
    [arrays] = saved.glob("arrays-*")
    os.truncate(arrays, 2**31 + 1)  # a hole, which takes no room
    with pytest.raises(DamagedFile, match=rf"{arrays.name}: is 2,147,483,649 bytes, the limit is 2,147,483,648"):
        load_topics(saved)


@pytest.mark.parametrize(("content", "words"), [("[]", "holds no object"), ("{", "is no JSON")], ids=["a list", "half an object"])
def test_facts_that_are_no_object_are_refused(saved: Path, content: str, words: str) -> None:
    (saved / MAIN).write_text(content)
    with pytest.raises(DamagedFile, match=rf"topics.json: {words}, the file was changed or damaged\n  fit the topics again"):
        load_topics(saved)
