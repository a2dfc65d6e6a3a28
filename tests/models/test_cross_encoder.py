"""Cross-encoders: scores equal sentence-transformers', for every family, both ways of saving, and honest about what was cut."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import CrossEncoder, SentenceEncoder
from munjang.errors import FolderError, UsageError
from munjang.models.long_text import TruncationWarning

torch = pytest.importorskip("torch", reason="the authority needs torch")
transformers = pytest.importorskip("transformers", reason="the authority needs transformers")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="sentence-transformers is the authority")

from tests.conftest import POSITIONS, Tiny, make_config, quiet, randomise, write_tokenizer  # noqa: E402

FAMILIES = ("bert", "roberta", "xlm-roberta", "electra", "distilbert", "mpnet")
PAIRS = [
    ("the rain", "비가 많이 온다"),
    ("cat", "a dog was on the train"),
    ("", "the sun"),
    ("snow is in winter", ""),
    ("눈이 올까요?", "겨울 날씨"),
]

MakeCross = Callable[..., Path]


@pytest.fixture(scope="session")
def make_cross(tmp_path_factory: pytest.TempPathFactory) -> MakeCross:
    made: dict[tuple[str, int], Path] = {}

    def make(family: str, labels: int = 1) -> Path:
        if (family, labels) not in made:
            folder = tmp_path_factory.mktemp(f"cross-{family}-{labels}")
            size = write_tokenizer(folder, family, 48)
            with quiet():
                config = make_config(Tiny(family=family, positions=POSITIONS), size)
                config.num_labels = labels
                model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
                randomise(model)
                model.save_pretrained(folder)
            made[family, labels] = folder
        return made[family, labels]

    return make


def authority(folder: Path) -> sentence_transformers.CrossEncoder:
    with quiet():
        return sentence_transformers.CrossEncoder(str(folder), device="cpu")


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_sentence_transformers(make_cross: MakeCross, family: str, labels: int) -> None:
    folder = make_cross(family, labels)
    with quiet():
        theirs = authority(folder).predict(PAIRS, convert_to_numpy=True)
    ours = CrossEncoder.load(folder).predict(PAIRS)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_saved_here_loads_there_with_equal_scores(make_cross: MakeCross, family: str, tmp_path: Path) -> None:
    ours = CrossEncoder.load(make_cross(family))
    ours.save(tmp_path / "saved")
    with quiet():
        theirs = authority(tmp_path / "saved").predict(PAIRS)
    np.testing.assert_allclose(theirs, ours.predict(PAIRS), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_segments_survive_saving_where_the_tokenizer_does_not_name_them(make_cross: MakeCross, family: str, tmp_path: Path) -> None:
    """A tokenizer made from scratch says by its template alone that a pair has segments."""
    bare = tmp_path / "bare"
    shutil.copytree(make_cross(family), bare)
    settings = json.loads((bare / "tokenizer_config.json").read_text(encoding="utf-8"))
    del settings["model_input_names"]
    (bare / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    ours = CrossEncoder.load(bare)
    np.testing.assert_array_equal(ours.predict(PAIRS), CrossEncoder.load(make_cross(family)).predict(PAIRS))
    ours.save(tmp_path / "saved")
    with quiet():
        theirs = authority(tmp_path / "saved").predict(PAIRS)
    np.testing.assert_allclose(theirs, ours.predict(PAIRS), atol=1e-5)


@pytest.mark.parametrize("labels", [1, 3])
def test_a_folder_saved_there_loads_here_with_equal_scores(make_cross: MakeCross, labels: int, tmp_path: Path) -> None:
    with quiet():
        theirs = authority(make_cross("bert", labels))
        theirs.save_pretrained(str(tmp_path / "saved"))
        expected = theirs.predict(PAIRS)
    np.testing.assert_allclose(CrossEncoder.load(tmp_path / "saved").predict(PAIRS), expected, atol=1e-5)


def test_rank_orders_as_sentence_transformers(make_cross: MakeCross) -> None:
    documents = [second for _, second in PAIRS if second] + ["the cat sleep", "coffee and a book", "서울에서 부산까지"]
    with quiet():
        theirs = authority(make_cross("bert")).rank("the rain", documents)
    ours = CrossEncoder.load(make_cross("bert")).rank("the rain", documents)
    assert [document.index for document in ours.documents] == [row["corpus_id"] for row in theirs]
    assert ours.scored == len(documents)


def test_scores_do_not_depend_on_the_batch(make_cross: MakeCross) -> None:
    model = CrossEncoder.load(make_cross("xlm-roberta"))
    alone = np.array([model.predict([pair])[0] for pair in PAIRS])
    np.testing.assert_allclose(model.predict(PAIRS), alone, atol=2e-6)


def test_int8_scores_are_near(make_cross: MakeCross, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path))
    folder = make_cross("bert")
    exact = CrossEncoder.load(folder).predict(PAIRS)
    for _ in range(2):  # the second load comes from the cache
        np.testing.assert_allclose(CrossEncoder.load(folder, compute="int8").predict(PAIRS), exact, atol=0.1)


def test_a_long_document_is_cut_and_the_query_is_not(make_cross: MakeCross) -> None:
    model = CrossEncoder.load(make_cross("bert"))
    pairs = [("the rain", "the sun " * 100), ("the rain", "sun")]
    with pytest.warns(TruncationWarning, match="1 of 2 pairs"):
        model.predict(pairs)
    assert model.predict_with_report(pairs).cut == [0]
    ids, _ = model._ids(pairs)
    query = model.tokenizer.encode_plain(["the rain"])[0]
    assert len(ids[0][0]) == model.max_length
    assert ids[0][0][1 : 1 + len(query)] == query


def test_a_ranking_says_which_documents_were_cut(make_cross: MakeCross) -> None:
    model = CrossEncoder.load(make_cross("bert"))
    for options in ({}, {"budget_seconds": 60.0}):
        with pytest.warns(TruncationWarning, match=r"2 of 20 pairs are longer than \d+ tokens; not read to the end"):
            ranking = model.rank("rain", ["sun", *["snow"] * 16, "the sun " * 100, "moon", "the rain " * 100], **options)
        assert ranking.cut == [17, 19]
    assert model.rank("rain", ["sun"]).cut == []
    with pytest.raises(UsageError, match="documents is one text"):
        model.rank("rain", "sun")


def test_a_query_longer_than_the_limit_leaves_room_for_the_document(make_cross: MakeCross) -> None:
    model = CrossEncoder.load(make_cross("bert"))
    (ids, types), _ = model._ids([("the sun " * 100, "rain")])[0][0], None
    assert len(ids) == model.max_length
    assert 1 in types


def test_a_budget_stops_scoring_and_says_how_far_it_got(make_cross: MakeCross) -> None:
    model = CrossEncoder.load(make_cross("bert"))
    documents = [f"the rain {number}" for number in range(200)]
    start = time.monotonic()
    ranking = model.rank("the rain", documents, budget_seconds=0)
    assert time.monotonic() - start < 5
    assert 0 < ranking.scored < 200
    assert len(ranking.documents) == 200
    assert sorted(document.index for document in ranking.documents) == list(range(200))


def test_a_sentence_encoder_is_refused_with_the_right_command(tiny_bert_folder: Path) -> None:
    with pytest.raises(FolderError, match="munjang encode"):
        CrossEncoder.load(tiny_bert_folder)


def test_a_cross_encoder_is_refused_where_vectors_are_wanted(make_cross: MakeCross) -> None:
    with pytest.raises(FolderError, match="munjang rerank"):
        SentenceEncoder.load(make_cross("bert"))


def test_ranking_needs_one_score(make_cross: MakeCross) -> None:
    with pytest.raises(UsageError, match="3 labels"):
        CrossEncoder.load(make_cross("bert", 3)).rank("a", ["b"])


def test_a_missing_head_is_named(make_cross: MakeCross, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    target = tmp_path / "headless"
    CrossEncoder.load(make_cross("bert")).save(target)
    tensors = load_file(target / "model.safetensors")
    save_file({name: array for name, array in tensors.items() if not name.startswith("classifier")}, target / "model.safetensors")
    with pytest.raises(FolderError, match="classifier"):
        CrossEncoder.load(target)


def test_what_is_not_a_pair_is_named(make_cross: MakeCross) -> None:
    with pytest.raises(UsageError, match=r"pairs\[1\] is a str, expected a pair of texts"):
        CrossEncoder.load(make_cross("bert")).predict([("a", "b"), "ab"])  # type: ignore[list-item]


def _with_share(folder: Path, target: Path, share: object) -> Path:
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    (target / "config.json").write_text(json.dumps(config | {"munjang": {"rerank_share": share}}), encoding="utf-8")
    return target


def test_a_folder_may_ask_for_a_share_which_others_pass_over(make_cross: MakeCross, tmp_path: Path) -> None:
    plain = make_cross("electra", 1)
    modest = _with_share(plain, tmp_path / "modest", 0.2)
    assert (CrossEncoder.load(plain).share, CrossEncoder.load(modest).share) == (1.0, 0.2)
    np.testing.assert_allclose(CrossEncoder.load(modest).predict(PAIRS), authority(modest).predict(PAIRS), atol=1e-5)
    CrossEncoder.load(modest).save(tmp_path / "saved")
    assert CrossEncoder.load(tmp_path / "saved").share == 0.2


@pytest.mark.parametrize("share", [0, 1.5, -1, "half", True, None, [0.2]])
def test_a_share_that_makes_no_sense_is_named(make_cross: MakeCross, tmp_path: Path, share: object) -> None:
    with pytest.raises(FolderError, match=r"config\.json: rerank_share is .*, expected more than 0 and at most 1"):
        CrossEncoder.load(_with_share(make_cross("electra", 1), tmp_path / "odd", share))
