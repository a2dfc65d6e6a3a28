"""A sentence encoder with a kept head labels pairs; what is not such a folder is refused with the right command named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import write_cross_encoder
from tests.kept_head import LABELS, PAIRS, keep_head

from munjang import CrossEncoder, PairClassifier, SentenceEncoder
from munjang.engine.folder import PAIR_CLASSIFIER
from munjang.engine.pair_head import PARTS, WEIGHTS_FILE, Part, read_pair_head
from munjang.errors import FolderError, UsageError
from munjang.models.long_text import TruncationWarning


@pytest.fixture(scope="module")
def nli(tiny_bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kept") / "nli"
    shutil.copytree(tiny_bert_folder, place)
    return keep_head(place)


@pytest.fixture
def spoilt(nli: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(nli, tmp_path / "nli"))


@pytest.mark.parametrize("parts", [PARTS[:3], PARTS, ("|u-v|",), ("u", "u*v")], ids=lambda parts: "".join(parts))
def test_the_probabilities_are_torchs_softmax_over_the_same_vectors(
    tiny_bert_folder: Path, tmp_path: Path, authority: Callable[..., np.ndarray], parts: tuple[Part, ...]
) -> None:
    torch = pytest.importorskip("torch")
    folder = keep_head(Path(shutil.copytree(tiny_bert_folder, tmp_path / "model")), parts)
    u, v = (torch.from_numpy(authority(folder, [pair[side] for pair in PAIRS])) for side in (0, 1))
    head = read_pair_head(folder / PAIR_CLASSIFIER)
    seen = {"u": u, "v": v, "|u-v|": (u - v).abs(), "u*v": u * v}
    features = torch.cat([seen[part] for part in parts], dim=1)
    logits = torch.nn.functional.linear(features, torch.tensor(head.weight_KF), torch.tensor(head.bias_K))
    model = PairClassifier.load(folder)
    np.testing.assert_allclose(model.predict(PAIRS), logits.softmax(dim=1).numpy(), atol=1e-5)
    np.testing.assert_allclose(model.predict(PAIRS, score="logits"), logits.numpy(), atol=1e-4)
    assert model.predict_with_report(PAIRS).predicted == [LABELS[place] for place in logits.argmax(dim=1).tolist()]


def test_the_encoder_beside_a_head_is_the_encoder_it_was(nli: Path, tiny_bert_folder: Path) -> None:
    with_head, without = SentenceEncoder.load(nli), SentenceEncoder.load(tiny_bert_folder)
    assert with_head.fingerprint == without.fingerprint
    np.testing.assert_array_equal(with_head.encode(["the rain"]), without.encode(["the rain"]))


def test_sentence_transformers_loads_the_folder_as_before(nli: Path, tiny_bert_folder: Path, authority: Callable[..., np.ndarray]) -> None:
    np.testing.assert_array_equal(authority(nli, ["the rain"]), authority(tiny_bert_folder, ["the rain"]))


def test_both_folders_load_it_and_the_name_says_which(nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = PairClassifier.load(nli), PairClassifier.load(nli / PAIR_CLASSIFIER)
    assert one.name == other.name == f"nli/{PAIR_CLASSIFIER}"
    assert one.fingerprint == other.fingerprint != SentenceEncoder.load(nli).fingerprint
    assert repr(one) == "PairClassifier('nli/pair_classifier', 3 labels, float32)"
    monkeypatch.chdir(nli / PAIR_CLASSIFIER)
    assert PairClassifier.load(".").labels == LABELS


@settings(max_examples=15)
@given(order=st.permutations(range(len(PAIRS))))
def test_a_pairs_scores_do_not_depend_on_its_neighbours(nli: Path, order: list[int]) -> None:
    model = PairClassifier.load(nli)
    np.testing.assert_allclose(model.predict([PAIRS[number] for number in order]), model.predict(PAIRS)[order], atol=2e-5)


def test_no_pairs_give_no_rows(nli: Path) -> None:
    assert PairClassifier.load(nli).predict([]).shape == (0, 3)


def test_a_text_that_is_cut_is_said(nli: Path) -> None:
    model, pairs = PairClassifier.load(nli), [("cat", "dog"), ("sleep " * 60, "cat"), ("cat", "sleep " * 60)]
    assert model.predict_with_report(pairs).cut == [1, 2]
    with pytest.warns(TruncationWarning, match="2 of 3 pairs have a text longer than 24 tokens"):
        model.predict(pairs)


def test_one_label_is_a_scorer_of_its_own(nli: Path, tmp_path: Path) -> None:
    model = PairClassifier.load(nli)
    scorer = model.for_label("entailment")
    np.testing.assert_array_equal(scorer.predict(PAIRS), model.predict(PAIRS)[:, 1])
    assert scorer.fingerprint != model.for_label("중립").fingerprint
    with pytest.raises(UsageError, match="no label 'neutral'; it has: contradiction, entailment, 중립"):
        model.for_label("neutral")
    write_cross_encoder(tmp_path / "one", 1)
    with pytest.raises(UsageError, match="one score per pair and no labels"):
        CrossEncoder.load(tmp_path / "one").for_label("LABEL_0")


def test_wrong_folders_are_refused_with_the_right_command(nli: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "cross", 3)
    with pytest.raises(FolderError, match="holds a cross-encoder.*\n.*munjang score.*CrossEncoder.load"):
        PairClassifier.load(tmp_path / "cross")
    with pytest.raises(FolderError, match="no pair classifier\n.*keep_head = true"):
        PairClassifier.load(tiny_bert_folder)
    for load in (SentenceEncoder.load, CrossEncoder.load):
        with pytest.raises(FolderError, match="holds a pair classifier.*\n.*munjang score.*PairClassifier.load"):
            load(nli / PAIR_CLASSIFIER)


def test_a_head_without_its_encoder_or_with_another_is_refused(spoilt: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(spoilt / PAIR_CLASSIFIER, tmp_path / "alone" / PAIR_CLASSIFIER)
    with pytest.raises(FolderError, match="not a model folder"):
        PairClassifier.load(alone)
    config = json.loads((spoilt / "config.json").read_text(encoding="utf-8"))
    (spoilt / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}), encoding="utf-8")
    with pytest.raises(FolderError, match="another sentence encoder.*\n.*keep_head"):
        PairClassifier.load(spoilt)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "munjang-pair-classifier-9"}, "format is"),
        ({"labels": "abc"}, "'labels' is not a list"),
        ({"labels": ["a", "a", "b"]}, "that differ"),
        ({"labels": ["a"]}, "expected 2 to"),
        ({"labels": ["a", "", "b"]}, "'labels' is not a list"),
        ({"labels": ["a", "b"]}, "expected weight"),
        ({"parts": ["u", "__import__('os')"]}, "'parts' is"),
        ({"parts": ["v", "u", "|u-v|"]}, "in this order"),
        ({"parts": []}, "'parts' is"),
        ({"dimension": 10**30}, "dimension|expected weight"),
        ({"dimension": True}, "'dimension' is"),
        ({"encoder": ["x"]}, "'encoder' is"),
    ],
    ids=str,
)
def test_a_head_that_does_not_fit_is_refused(spoilt: Path, change: dict[str, object], said: str) -> None:
    file = spoilt / PAIR_CLASSIFIER / "pair_classifier.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(FolderError, match=said):
        PairClassifier.load(spoilt)


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 64, b"\x80\x04cos\nsystem\n", b'{"a":' * 50_000], ids=["empty", "zeros", "pickle", "deep"]
)
def test_damaged_files_are_refused(spoilt: Path, content: bytes) -> None:
    for name in (WEIGHTS_FILE, "pair_classifier.json"):
        (spoilt / PAIR_CLASSIFIER / name).write_bytes(content)
        with pytest.raises(FolderError):
            PairClassifier.load(spoilt)


def test_weights_that_are_no_numbers_are_refused(spoilt: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = spoilt / PAIR_CLASSIFIER / WEIGHTS_FILE
    arrays = dict(load_file(path))
    save_file({**arrays, "bias": np.full(3, np.nan, np.float32)}, path)
    with pytest.raises(FolderError, match="NaN"):
        PairClassifier.load(spoilt)
    path.unlink()
    with pytest.raises(FolderError, match=f"no {WEIGHTS_FILE}"):
        PairClassifier.load(spoilt)
