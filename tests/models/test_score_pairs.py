"""One verb scores pairs with any model: sentence-transformers' numbers, the caller's order, bounded memory, clear refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import quiet, write_cross_encoder
from tests.kept_head import PAIRS, keep_head

from munjang import CrossEncoder, PairClassifier, SentenceEncoder, score_pairs
from munjang.errors import UsageError
from munjang.models.long_text import TruncationWarning
from munjang.models.score_pairs import load_pair_model, score_block, stream_scores

sentence_transformers = pytest.importorskip("sentence_transformers", reason="sentence-transformers is the authority")


@pytest.fixture(scope="module")
def cross_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    made = {}
    for labels in (1, 3):
        made[labels] = tmp_path_factory.mktemp(f"cross-{labels}")
        write_cross_encoder(made[labels], labels)
    config = made[3] / "config.json"
    names = {"0": "entailment", "1": "neutral", "2": "모순"}
    values = json.loads(config.read_text(encoding="utf-8")) | {
        "id2label": names,
        "label2id": {name: int(key) for key, name in names.items()},
    }
    config.write_text(json.dumps(values), encoding="utf-8")
    return made


def theirs(folder: Path) -> sentence_transformers.CrossEncoder:
    with quiet():
        return sentence_transformers.CrossEncoder(str(folder), device="cpu")


def test_a_cross_encoders_score_equals_sentence_transformers(cross_folders: dict[int, Path]) -> None:
    ours = score_pairs(PAIRS, CrossEncoder.load(cross_folders[1]))
    with quiet():
        expected = theirs(cross_folders[1]).predict(PAIRS)
    assert ours.labels == ()
    np.testing.assert_allclose(ours.scores, expected, atol=1e-5)


def test_a_cross_encoders_labels_and_probabilities_equal_sentence_transformers(cross_folders: dict[int, Path]) -> None:
    peer = theirs(cross_folders[3])
    with quiet():
        expected, logits = peer.predict(PAIRS, apply_softmax=True), peer.predict(PAIRS)
    ours = score_pairs(PAIRS, CrossEncoder.load(cross_folders[3]))
    np.testing.assert_allclose(ours.scores, expected, atol=1e-5)
    assert ours.labels == ("entailment", "neutral", "모순") == tuple(peer.model.config.id2label[number] for number in range(3))
    assert ours.predicted == [peer.model.config.id2label[int(place)] for place in logits.argmax(axis=1)]
    np.testing.assert_allclose(score_pairs(PAIRS, CrossEncoder.load(cross_folders[3]), score="logits").scores, logits, atol=1e-4)


def test_a_sentence_encoders_score_is_the_cosine(tiny_bert_folder: Path, authority: Callable[..., np.ndarray]) -> None:
    a, b = (authority(tiny_bert_folder, [pair[side] for pair in PAIRS]) for side in (0, 1))
    expected = sentence_transformers.util.pairwise_cos_sim(a, b).numpy()
    model = SentenceEncoder.load(tiny_bert_folder)
    np.testing.assert_allclose(score_pairs(PAIRS, model).scores, expected, atol=1e-5)
    np.testing.assert_array_equal(score_pairs(PAIRS, model.with_prompt()).scores, score_pairs(PAIRS, model).scores)
    assert score_pairs(PAIRS, model).scores.max() <= 1


def test_a_sentence_encoder_with_a_prompt_scores_with_it(tiny_folder: Callable[..., Path]) -> None:
    model = SentenceEncoder.load(tiny_folder("bert"))
    with_prompt = [("rain " + a, "rain " + b) for a, b in PAIRS]
    np.testing.assert_allclose(score_pairs(PAIRS, model.with_prompt("rain ")).scores, score_pairs(with_prompt, model).scores, atol=1e-6)


@pytest.mark.parametrize("labels", [1, 3])
def test_an_iterator_is_read_block_by_block_and_gives_the_same(cross_folders: dict[int, Path], labels: int) -> None:
    model, held = CrossEncoder.load(cross_folders[labels]), []

    def pairs() -> Iterator[tuple[str, str]]:
        for number in range(20):
            held.append(number)
            yield PAIRS[number % len(PAIRS)]

    blocks = stream_scores(pairs(), model, block=8)
    next(blocks)
    assert len(held) <= 8
    whole = score_pairs([PAIRS[number % len(PAIRS)] for number in range(20)], model)
    streamed = np.concatenate([block.scores for block in stream_scores(pairs(), model, block=8)])
    np.testing.assert_allclose(streamed, whole.scores, atol=2e-5)


def test_no_pairs_give_no_scores(cross_folders: dict[int, Path], tiny_bert_folder: Path) -> None:
    for nothing in ([], iter([])):
        assert score_pairs(nothing, SentenceEncoder.load(tiny_bert_folder)).scores.shape == (0,)
        found = score_pairs(nothing, CrossEncoder.load(cross_folders[3]))
        assert (found.scores.shape, found.labels[0], found.predicted) == ((0, 3), "entailment", [])


def test_cut_pairs_are_said_with_their_numbers(tiny_bert_folder: Path) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    with pytest.warns(TruncationWarning, match="1 of 3 pairs is longer than the model's limit of 24 tokens"):
        found = score_pairs([("cat", "dog"), ("cat", "sun"), ("sleep " * 60, "cat")], model)
    assert found.cut == [2]


def test_what_is_no_pair_or_no_model_is_refused(tiny_bert_folder: Path) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    with pytest.raises(UsageError, match="model is the text 'ko-en-small', expected a loaded model"):
        score_pairs(PAIRS, "ko-en-small")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="model is a NoneType"):
        score_pairs(PAIRS, None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a sentence encoder gives cosines"):
        score_pairs(PAIRS, model, score="softmax")
    with pytest.raises(UsageError, match="score is 'loud'"):
        score_pairs(PAIRS, model, score="loud")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"pairs\[1\] has 3 texts"):
        score_pairs([("a", "b"), ("a", "b", "c")], model)  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"pairs\[2049\] is None"):
        score_pairs(iter([("cat", "dog")] * 2049 + [None]), model)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="no labels"):
        score_pairs(PAIRS, model).predicted  # noqa: B018


def test_a_folder_is_loaded_as_what_it_holds(cross_folders: dict[int, Path], tiny_bert_folder: Path, tmp_path: Path) -> None:
    kept = keep_head(Path(shutil.copytree(tiny_bert_folder, tmp_path / "kept")))
    assert isinstance(load_pair_model(cross_folders[1]), CrossEncoder)
    assert isinstance(load_pair_model(kept), SentenceEncoder)
    assert isinstance(load_pair_model(kept / "pair_classifier"), PairClassifier)


def test_a_model_with_an_activation_of_its_own_keeps_it(cross_folders: dict[int, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(cross_folders[3], tmp_path / "multi"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    own = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "4.0.1"}}
    (folder / "config.json").write_text(json.dumps(config | own), encoding="utf-8")
    with quiet():
        expected = theirs(folder).predict(PAIRS)
    np.testing.assert_allclose(score_block(PAIRS, CrossEncoder.load(folder)).scores, expected, atol=1e-5)
