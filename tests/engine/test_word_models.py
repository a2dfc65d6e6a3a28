"""`WordEmbeddings` and `BoW` in folders that sentence-transformers saved: equal vectors, and clear refusals of what is not computed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang import SentenceEncoder
from munjang.errors import FolderError
from munjang.models.compress.parts import read_parts
from munjang.text.word_tokenizer import WORDS_FILE, WordTokenizer

WORDS = ["PADDING_TOKEN", "the", "rain", "Falls", "falls", "in", "spain", "비가", "온다", "don't", "--", "3.14", "Über", "a,b"]
TEXTS = [
    "The rain, in Spain!",
    "Falls FALLS falls 'falls'",
    "비가 온다.",
    "don't (don't) -- 3.14 über a,b",
    "",
    "nothing known here",
    "the in the",
    "rain PADDING_TOKEN  \t rain\nrain",
    "비가 " * 40,
]
STOPS = ["the", "in"]


def save(folder: Path, kind: str) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW, Dense, Normalize, Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    table = np.random.default_rng(3).standard_normal((len(WORDS), 6))
    longest = 12 if kind == "words, cut" else 1_000_000
    tokenizer = WhitespaceTokenizer(WORDS, stop_words=STOPS, do_lower_case=kind == "words, lower case")
    words = WordEmbeddings(tokenizer, table, max_seq_length=longest)
    weights = {"rain": 2.5, "falls": 0.25, "über": 3.0}
    modules: dict[str, list[Any]] = {
        "words": [words, Pooling(6, pooling_mode="mean")],
        "words, lower case": [words, Pooling(6, pooling_mode="mean"), Normalize()],
        "words, cut": [words, Pooling(6, pooling_mode="mean"), Dense(6, 4)],
        "bag": [BoW([*WORDS, "rain"], weights)],
        "bag, once": [BoW(WORDS, weights, unknown_word_weight=0.5, cumulative_term_frequency=False), Normalize()],
        "bag, dense": [BoW(WORDS, weights), Dense(len(WORDS), 5)],
        "max": [words, Pooling(6, pooling_mode="max")],
    }
    SentenceTransformer(modules=modules[kind], device="cpu").save(str(folder))


KINDS = ("words", "words, lower case", "words, cut", "bag", "bag, once", "bag, dense")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("sentence_transformers")
    root = tmp_path_factory.mktemp("words")
    for kind in (*KINDS, "max"):
        save(root / kind, kind)
    return {kind: root / kind for kind in (*KINDS, "max")}


def encode_with_peer(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(TEXTS)


@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_sentence_transformers(folders: dict[str, Path], kind: str) -> None:
    ours = SentenceEncoder.load(folders[kind]).encode(TEXTS)
    theirs = encode_with_peer(folders[kind])
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_copy_is_the_same_model_for_both(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    model = SentenceEncoder.load(folders[kind])
    model.save(tmp_path / "copy")
    np.testing.assert_allclose(SentenceEncoder.load(tmp_path / "copy").encode(TEXTS), model.encode(TEXTS), rtol=0, atol=0)
    np.testing.assert_allclose(encode_with_peer(tmp_path / "copy"), model.encode(TEXTS), rtol=0, atol=1e-6)


def test_words_are_shown_with_their_places(folders: dict[str, Path]) -> None:
    model = SentenceEncoder.load(folders["words"])
    seen = model.tokenizer.encode_with_offsets("The rain, (Falls) in spain")
    assert seen.tokens == ["rain", "Falls", "spain"]
    assert seen.offsets == [(4, 8), (11, 16), (21, 26)]
    [tokens] = model.encode_tokens(["rain falls"])
    assert tokens.vectors.shape == (2, 6)


@given(text=st.text(alphabet="aAbB ,.'\u3000비\t", max_size=40), lowercase=st.booleans())
def test_words_are_found_as_sentence_transformers_finds_them(text: str, lowercase: bool) -> None:
    peer = pytest.importorskip("sentence_transformers.sentence_transformer.modules.tokenizer")
    words, stops = ["a", "B", "ab", "a'b", "비", "Ab", ","], ["b", "ba"]
    theirs = peer.WhitespaceTokenizer(words, stop_words=stops, do_lower_case=lowercase)
    ours = WordTokenizer(words, stops, lowercase=lowercase)
    prepared = ours._prepare(text)
    assert ours.encode([text])[0] == theirs.tokenize(prepared)


def test_another_pooling_of_words_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(FolderError, match="pooled by their mean"):
        SentenceEncoder.load(folders["max"])
    with pytest.raises(FolderError, match="pooled by their mean"):
        SentenceEncoder.load(folders["words"], pooling="max")


def change(folder: Path, name: str, **values: Any) -> None:
    [path] = folder.glob(f"**/{name}")
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


REFUSED: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    (
        "words",
        "wordembedding_config.json",
        {"tokenizer_class": "sentence_transformers.models.tokenizer.PhraseTokenizer"},
        "PhraseTokenizer",
    ),
    ("words", "wordembedding_config.json", {"max_seq_length": "many"}, "max_seq_length"),
    ("words", WORDS_FILE, {"vocab": [*WORDS, "more"]}, "do not belong together"),
    ("words", WORDS_FILE, {"vocab": [*WORDS[1:], "rain"]}, "twice"),
    ("words", WORDS_FILE, {"vocab": "rain"}, "vocab"),
    ("words", WORDS_FILE, {"stop_words": None}, "stop_words"),
    ("bag", "0_BoW/config.json", {"vocab": [1, 2]}, "vocab"),
    ("bag", "0_BoW/config.json", {"word_weights": {"rain": "much"}}, "finite numbers"),
    ("bag", "0_BoW/config.json", {"unknown_word_weight": float("inf")}, "finite numbers"),
    ("bag", "0_BoW/config.json", {"word_weights": ["rain"]}, "table"),
)


@pytest.mark.parametrize(("kind", "name", "values", "said"), REFUSED, ids=[f"{row[0]}: {row[3]}" for row in REFUSED])
def test_what_a_hostile_folder_says_is_one_line(
    folders: dict[str, Path], tmp_path: Path, kind: str, name: str, values: dict[str, Any], said: str
) -> None:
    shutil.copytree(folders[kind], tmp_path / "model")
    change(tmp_path / "model", name, **values)
    with pytest.raises(FolderError, match=said):
        SentenceEncoder.load(tmp_path / "model")


def test_layers_over_words_are_refused_by_name(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["words"], tmp_path / "model")
    path = tmp_path / "model/modules.json"
    modules = json.loads(path.read_text())
    modules.insert(1, {"idx": 1, "name": "1", "path": "1_LSTM", "type": "sentence_transformers.models.LSTM"})
    path.write_text(json.dumps(modules))
    with pytest.raises(FolderError, match="'LSTM' is not supported"):
        SentenceEncoder.load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["words", "bag"])
def test_compressing_refuses_a_list_of_words(folders: dict[str, Path], kind: str) -> None:
    with pytest.raises(FolderError, match="a list of words in place of a tokenizer, which compressing does not do"):
        read_parts(folders[kind])
