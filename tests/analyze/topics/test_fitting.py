from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from tests.analyze.topics.conftest import DIMENSION, WORDS, Collection, made

from munjang.analyze.topics.assign import assign_topics
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import TopicModel
from munjang.errors import InputError, UsageError
from munjang.text.tagging import choose_tagger

PLAIN = choose_tagger("plain")


class Words:
    """An encoder that knows a direction for each kind of the collection."""

    dimension, fingerprint = DIMENSION, "words"

    def encode(self, texts, /):
        directions = np.random.default_rng(7).standard_normal((len(WORDS), DIMENSION))
        kinds = list(WORDS.values())
        rows = [sum((directions[k] for k in range(4) for word in text.split() if word in kinds[k]), np.zeros(DIMENSION)) for text in texts]
        return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize("method", ["graph", "kmeans", "hdbscan"])
def test_each_method_finds_the_topics_that_are_there(collection: Collection, method: str) -> None:
    settings = {"method": method, "topics": 4}
    found = fit_topics(collection.texts, vectors=collection.vectors, **settings, by=PLAIN)
    kept = found.labels >= 0
    assert kept.mean() >= 0.8
    assert adjusted_rand_score(collection.truth[kept], found.labels[kept]) > 0.9


def test_words_and_documents_of_a_topic_are_its_own(collection: Collection, model: TopicModel) -> None:
    assert len(model.topics) == 4
    for topic in model.topics:
        kind = collection.truth[topic.documents[0]]
        assert {word for word, _ in topic.words} <= set(list(WORDS.values())[kind])
        assert all(collection.truth[row] == kind for row in topic.documents)
        assert topic.size == (model.labels == topic.id).sum()
        weights = [weight for _, weight in topic.words]
        assert weights == sorted(weights, reverse=True)
    sizes = [topic.size for topic in model.topics]
    assert sizes == sorted(sizes, reverse=True)
    assert model.coherence > 0.1
    assert model.diversity == 1


def test_the_training_texts_are_assigned_as_they_were_fitted(collection: Collection, model: TopicModel) -> None:
    assert (assign_topics(model, collection.texts, vectors=collection.vectors).labels == model.labels).all()
    unknown = [f"{text} again" for text in collection.texts]  # the function alone, without the memory of known texts
    assert (assign_topics(model, unknown, vectors=collection.vectors).labels == model.labels).all()


def test_equal_texts_share_a_topic_whatever_their_vectors(collection: Collection) -> None:
    texts = [*collection.texts, *collection.texts[:5]]
    vectors = np.concatenate([collection.vectors, -collection.vectors[:5]])
    found = fit_topics(texts, vectors=vectors, by=PLAIN)
    assert (found.labels[-5:] == found.labels[:5]).all()


def test_nfc_and_nfd_give_equal_topics(collection: Collection) -> None:
    pytest.importorskip("kiwipiepy", reason="Kiwi is not installed")
    texts = [f"{text} 한국의 날씨 소식" for text in collection.texts]
    composed = fit_topics(texts, vectors=collection.vectors)
    decomposed = fit_topics([unicodedata.normalize("NFD", text) for text in texts], vectors=collection.vectors)
    assert composed.topics == decomposed.topics
    assert (composed.labels == decomposed.labels).all()


def test_two_processes_give_identical_topics(tmp_path: Path, collection: Collection) -> None:
    np.save(tmp_path / "vectors.npy", collection.vectors)
    (tmp_path / "texts.txt").write_text("\n".join(collection.texts), encoding="utf-8")
    program = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from munjang.analyze.topics.fitting import fit_topics; from munjang.text.tagging import choose_tagger\n"
        "folder = Path(sys.argv[1])\n"
        "texts = (folder / 'texts.txt').read_text().split('\\n')\n"
        "m = fit_topics(texts, vectors=np.load(folder / 'vectors.npy'), by=choose_tagger('plain'))\n"
        "print(m.labels.tolist(), [vars(topic) for topic in m.topics])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) > 1_000


@pytest.mark.parametrize(
    "texts",
    [["one text"], ["same text"] * 30, ["rain"] * 3 + ["soup"], ["rain", "soup"], [""], ["!?", "…"]],
    ids=["one", "all equal", "one word each", "two", "empty", "no words"],
)
def test_tiny_and_uniform_collections_have_an_answer(texts: list[str]) -> None:
    vectors = np.array([[float(ord(ch)) for ch in (text + "    ")[:4]] for text in texts], dtype=np.float32)
    found = fit_topics(texts, vectors=vectors, by=PLAIN)
    assert len(found.labels) == len(texts)
    assert found.topics
    assert all(topic.name for topic in found.topics)
    assert (assign_topics(found, texts, vectors=vectors).labels == found.labels).all()


def test_no_texts_and_wrong_vectors_are_refused(collection: Collection) -> None:
    with pytest.raises(InputError, match="at least one"):
        fit_topics([], vectors=np.zeros((0, 3)))
    with pytest.raises(UsageError, match="one row for each text"):
        fit_topics(["a", "b"], vectors=np.ones((3, 3)))
    with pytest.raises(UsageError, match="encoder"):
        fit_topics(["a", "b"])
    with pytest.raises(UsageError, match="encoder"):
        fit_topics(["a"], vectors=[[1, 2]], labels=("x",), by=PLAIN)
    with pytest.raises(UsageError, match="outliers"):
        fit_topics(["a"], vectors=[[1, 2]], outliers=2)


def test_seed_words_make_a_topic_of_their_own(collection: Collection) -> None:
    settings = {"topics": 2, "guides": (("court", "judge", "lawyer", "crime"),)}
    found = fit_topics(collection.texts, vectors=collection.vectors, **settings, by=PLAIN)
    law = found.labels[collection.truth == 3]
    assert (law == np.bincount(law[law >= 0]).argmax()).mean() > 0.8
    assert {word for word, _ in found.topic(int(np.bincount(law[law >= 0]).argmax())).words} <= set(WORDS["law"])


def test_labels_name_the_topics_near_to_them(collection: Collection) -> None:
    settings = {"labels": ("train station", "soup kitchen")}
    found = fit_topics(collection.texts, vectors=collection.vectors, encoder=Words(), **settings, by=PLAIN)
    named = {topic.name: topic.id for topic in found.topics}
    assert (found.labels[collection.truth == 2] == named["train station"]).mean() > 0.9
    assert (found.labels[collection.truth == 1] == named["soup kitchen"]).mean() > 0.9


def test_outliers_never_exceed_the_stated_share() -> None:
    random = np.random.default_rng(3)
    base = made(20)
    vectors = np.concatenate([base.vectors, 3 * random.standard_normal((20, DIMENSION)).astype(np.float32)])
    texts = base.texts + [f"stray text{number}" for number in range(20)]
    for share in (0.0, 0.05, 0.2):
        for method in ("graph", "hdbscan"):
            found = fit_topics(texts, vectors=vectors, outliers=share, method=method, by=PLAIN)  # type: ignore[arg-type]
            assert found.outliers <= share * len(texts)


def test_umap_is_asked_for_by_name_and_names_its_extra(collection: Collection) -> None:
    settings = {"reduction": "umap"}
    try:
        import umap  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match="umap"):
            fit_topics(collection.texts, vectors=collection.vectors, **settings, by=PLAIN)
    else:
        assert fit_topics(collection.texts, vectors=collection.vectors, **settings, by=PLAIN).topics
