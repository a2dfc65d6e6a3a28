"""What can be done with a fitted model: save, ask, change, update."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from tests.analyze.topics.conftest import Collection, made

from munjang.analyze.topics.assign import assign_topics, compute_distribution, find_topics
from munjang.analyze.topics.describe import parse_moment, topics_over_time, topics_per_class
from munjang.analyze.topics.edit import merge_topics, reduce_topics, rename_topic, set_outliers, split_topic, update_topics
from munjang.analyze.topics.model import TopicModel
from munjang.analyze.topics.saving import MAIN, load_topics, save_topics
from munjang.errors import DamagedFile, FolderError, InputError, UsageError


def same(a: TopicModel, b: TopicModel) -> bool:
    return a.topics == b.topics and a.labels.tolist() == b.labels.tolist() and a.settings == b.settings and dict(a.names) == dict(b.names)


def test_a_loaded_model_is_the_saved_one(model: TopicModel, collection: Collection, tmp_path: Path) -> None:
    save_topics(model, tmp_path / "model")
    loaded = load_topics(tmp_path / "model")
    assert same(loaded, model)
    fresh = made(20, seed=5)
    for texts, vectors in ((collection.texts, collection.vectors), (fresh.texts, fresh.vectors)):
        ours, theirs = (assign_topics(each, texts, vectors=vectors) for each in (model, loaded))
        assert (ours.labels == theirs.labels).all()
        assert (ours.scores == theirs.scores).all()
    assert same(merge_topics(loaded, [[0, 1]]), merge_topics(model, [[0, 1]]))


def test_saving_again_leaves_one_model_and_no_leftovers(model: TopicModel, tmp_path: Path) -> None:
    save_topics(model, tmp_path / "model")
    save_topics(rename_topic(model, 0, "첫 번째"), tmp_path / "model")
    assert len(list((tmp_path / "model").iterdir())) == 3
    assert load_topics(tmp_path / "model").topic(0).name == "첫 번째"


def test_a_flipped_byte_is_noticed_in_every_file(model: TopicModel, tmp_path: Path) -> None:
    save_topics(model, tmp_path / "model")
    for path in sorted((tmp_path / "model").iterdir()):
        whole = path.read_bytes()
        for place in np.linspace(2, len(whole) - 3, 12).astype(int):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises((DamagedFile, FolderError)):
                load_topics(tmp_path / "model")
        path.write_bytes(whole)
    load_topics(tmp_path / "model")


def test_foreign_folders_are_refused(model: TopicModel, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="holds no topics.json"):
        load_topics(tmp_path)
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UsageError, match="other files"):
        save_topics(model, tmp_path)
    (tmp_path / MAIN).write_text(json.dumps({"format": "munjang topics 99"}))
    with pytest.raises(FolderError, match="format"):
        load_topics(tmp_path)


def test_new_documents_land_in_their_topic(model: TopicModel, collection: Collection) -> None:
    fresh = made(20, seed=9)
    topic_of = {kind: int(np.bincount(model.labels[(collection.truth == kind) & (model.labels >= 0)]).argmax()) for kind in range(4)}
    found = assign_topics(model, fresh.texts, vectors=fresh.vectors).labels
    kept = found >= 0
    assert kept.mean() > 0.8
    assert (found == [topic_of[kind] for kind in fresh.truth])[kept].mean() > 0.97
    assert find_topics(model, fresh.vectors[0], k=2)[0][0] == topic_of[0]
    with pytest.raises(UsageError, match="dimensions"):
        assign_topics(model, ["x"], vectors=[[1.0, 2.0]])


def test_a_text_about_two_things_has_two_topics(model: TopicModel) -> None:
    shares = compute_distribution(model, ["rain snow wind storm court judge lawyer verdict", "rain snow wind storm cloud", "nothing known"])
    assert shares.shape == (3, len(model.topics))
    assert np.sort(shares[0])[-2] > 0.3
    assert shares[1].max() > 0.95
    assert shares[2].sum() == 0


def test_merging_moves_no_other_document(model: TopicModel) -> None:
    merged = merge_topics(model, [[1, 2]])
    assert (merged.labels == np.where(model.labels == 2, 1, model.labels)).all()
    assert merged.topic(1).size == model.topic(1).size + model.topic(2).size
    assert len(reduce_topics(model, 2).topics) == 2
    with pytest.raises(UsageError, match="there is none"):
        merge_topics(model, [[1, 99]])
    with pytest.raises(UsageError, match="at least 2"):
        merge_topics(model, [[1]])


def test_splitting_what_was_merged_brings_it_back(model: TopicModel, collection: Collection) -> None:
    merged = merge_topics(model, [[1, 2]])
    split = split_topic(merged, 1)
    assert len(split.topics) == len(model.topics)
    kept = split.labels >= 0
    kinds = [set(collection.truth[(split.labels == topic.id) & kept].tolist()) for topic in split.topics]
    assert all(len(kind) == 1 for kind in kinds)
    assert (assign_topics(split, collection.texts, vectors=collection.vectors).labels == split.labels).all()


def test_outliers_can_be_reduced_to_none(model: TopicModel) -> None:
    assert set_outliers(model, 0.0).outliers == 0


def test_an_update_adds_documents_and_new_topics(collection: Collection) -> None:
    from munjang.analyze.topics.fitting import fit_topics
    from munjang.text.tagging import choose_tagger

    old, new = made(30, kinds=("weather", "food")), made(30, seed=4, kinds=("trains",))
    first = fit_topics(old.texts, vectors=old.vectors, by=choose_tagger("plain"))
    grown = update_topics(first, new.texts, vectors=new.vectors)
    assert len(grown.documents) == 90
    assert len(grown.bag) == 90
    assert len(grown.topics) > len(first.topics)
    assert any("train" in dict(topic.words) for topic in grown.topics)
    texts, vectors = old.texts + new.texts, np.concatenate([old.vectors, new.vectors])
    assert (assign_topics(grown, texts, vectors=vectors).labels == grown.labels).all()


def test_topics_over_time_count_every_document_with_a_topic(model: TopicModel) -> None:
    years = [2000 + row % 7 for row in range(len(model.documents))]
    slices = topics_over_time(model, years)
    assert slices.names == tuple(str(year) for year in range(2000, 2007))
    assert slices.counts_TK.sum() == (model.labels >= 0).sum()
    some = np.flatnonzero(slices.counts_TK[0])[0]
    assert slices.words[0][some]
    monthly = topics_over_time(model, [f"2024-{1 + row % 12:02d}-01" for row in range(len(model.documents))], periods=12)
    assert monthly.names[:2] == ("2024-01", "2024-02")
    assert len(monthly.names) == 12
    assert (monthly.counts_TK.sum(axis=1) > 0).all()


def test_topics_per_class_tell_classes_apart(model: TopicModel, collection: Collection) -> None:
    slices = topics_per_class(model, collection.truth.tolist())
    assert slices.names == ("0", "1", "2", "3")
    assert (slices.counts_TK.max(axis=1) / slices.counts_TK.sum(axis=1) > 0.9).all()
    assert slices.facts()[0]["topics"]


@pytest.mark.parametrize(
    ("time", "expected"), [("2024.07.01", 2024.5), ("2024년 7월", 2024.5), (date(2024, 1, 1), 2024.0), (12.5, 12.5)], ids=str
)
def test_times_are_read_as_people_write_them(time: object, expected: float) -> None:
    assert parse_moment(time, 1) == pytest.approx(expected)


def test_what_is_no_time_is_refused_with_its_row(model: TopicModel) -> None:
    with pytest.raises(InputError, match="row 2"):
        topics_over_time(replace(model, documents=model.documents), ["2024", "soon", *["2024"] * (len(model.documents) - 2)])
