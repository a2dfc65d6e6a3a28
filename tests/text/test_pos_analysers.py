"""Analysers of the KoNLPy kind: by name from a closed list, or an object that a program hands over; the name goes into files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from munjang import Library, choose_tagger, fit_topics, load_topics, parse_dictionary, save_topics, use_analyser
from munjang.analyze.topics.topic_words import list_words
from munjang.errors import UsageError
from munjang.text import pos_analysers
from munjang.text.korean import split_by


class Spaces:
    """Takes what stands between spaces for a noun, and the last letter of a long Korean word for a particle."""

    def pos(self, text: str) -> list[tuple[str, str]]:
        cut = [(word[:-1], word[-1]) if len(word) > 2 and not word.isascii() else (word, "") for word in text.split()]
        return [pair for noun, particle in cut for pair in ((noun, "Noun"), (particle, "Josa")) if pair[0]]


class Encoder:
    name, dimension, fingerprint, max_length = "letters", 8, "letters-8", None

    def encode(self, texts: Any, /) -> Any:
        return np.stack([np.bincount([ord(letter) % 8 for letter in text] or [0], minlength=8).astype(np.float32) for text in texts])


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pos_analysers, "_used", {})
    pos_analysers._load.cache_clear()


def words_of(library: Library, query: str) -> list[str]:
    return [hit.id for hit in library.search(query, 4, by="words") if hit.score > 0]


def test_a_library_splits_its_words_by_an_object_and_asks_it_again(tmp_path: Path) -> None:
    with Library.open(tmp_path / "l.db", Encoder(), analyser=Spaces()) as library:
        library.add([{"id": "a", "text": "바람막이는 가볍다 RAIN"}, {"id": "b", "text": "국화차를 마신다"}])
        assert library.info().analyser == "pos:spaces+stems"
        assert words_of(library, "바람막이가") == ["a"]
        assert words_of(library, "rains") == ["a"]
        assert words_of(library, "바람") == []  # Kiwi would cut it


def test_a_library_made_with_an_object_asks_for_it_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library.open(tmp_path / "l.db", Encoder(), analyser=Spaces()) as library:
        library.add([{"id": "a", "text": "바람막이는"}])
    monkeypatch.setattr(pos_analysers, "_used", {})
    with Library.open(tmp_path / "l.db", Encoder()) as library:
        assert library.info().documents == 1
        with pytest.raises(UsageError, match=r"spaces.*\n  hand it over first: munjang.use_analyser"):
            library.search("바람막이가")
        use_analyser(Spaces())
        assert words_of(library, "바람막이가") == ["a"]


def konlpy(monkeypatch: pytest.MonkeyPatch, **classes: Any) -> None:
    package, tag = ModuleType("konlpy"), ModuleType("konlpy.tag")
    tag.__dict__.update(classes)
    monkeypatch.setattr(pos_analysers, "find_spec", lambda name: name if name == "konlpy" else None)
    monkeypatch.setitem(sys.modules, "konlpy", package)
    monkeypatch.setitem(sys.modules, "konlpy.tag", tag)


def test_a_name_of_the_list_is_loaded_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    konlpy(monkeypatch, Okt=Spaces)
    assert split_by("pos:okt")("바람막이는 RAIN") == [("바람막이", "NNG"), ("rain", "")]
    assert choose_tagger("okt").name == "pos:okt"
    with Library.open(tmp_path / "l.db", Encoder(), analyser="okt") as library:
        assert library.info().analyser == "pos:okt+stems"


@pytest.mark.parametrize("name", ["okt", "komoran", "mecab"])
def test_a_name_that_is_not_installed_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pos_analysers, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="is not installed\n  pip install"):
        choose_tagger(name)


def test_an_analyser_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise RuntimeError("no JVM")

    konlpy(monkeypatch, Komoran=no_java)
    with pytest.raises(UsageError, match="komoran does not start: 'no JVM'"):
        choose_tagger("komoran")


@pytest.mark.parametrize("name", ["os:system", "pos:os.system", "pos:../x", "konlpy.tag:Okt", "pos:"])
def test_no_other_name_is_imported(name: str) -> None:
    with pytest.raises(UsageError, match=r"is unknown|is not known"):
        choose_tagger(name)


def test_what_has_no_pos_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected an object with a pos"):
        use_analyser(object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="letters, digits"):
        use_analyser(Spaces(), "a name")


DICTIONARY = parse_dictionary("word\t바람막이왕\nvariant\t쥬스\t주스\nstop\t추천\nsynonym\ta\tb\n")


def test_a_dictionary_spells_and_stops_for_every_tagger() -> None:
    by = choose_tagger("plain", dictionary=DICTIONARY)
    assert list_words(["사과쥬스 추천", "사과주스"], by) == [["사과주스"], ["사과주스"]]
    assert choose_tagger(by.name).name == by.name
    assert "synonym" not in by.name


def test_kiwi_keeps_the_words_of_a_dictionary_whole() -> None:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    text = "바람막이왕 자켓"
    plain, own = ([each.form for each in next(choose_tagger("kiwi", dictionary=each).tag([text]))] for each in (None, DICTIONARY))
    assert plain[0] != "바람막이왕"
    assert own[0] == "바람막이왕"
    assert choose_tagger("kiwi", user_words=["바람막이왕"]).name == "kiwi+dictionary\nword\t바람막이왕\tNNP\n"


def test_saved_topics_remember_the_dictionary(tmp_path: Path) -> None:
    texts = ["사과쥬스 추천", "사과주스 추천", "포도주스", "국화차"]
    model = fit_topics(texts, Encoder(), topics=1, min_size=1, by=choose_tagger("plain", dictionary=DICTIONARY))
    save_topics(model, tmp_path / "topics")
    words = {word for topic in load_topics(tmp_path / "topics").topics for word, _ in topic.words}
    assert "사과주스" in words
    assert not {"추천", "사과쥬스"} & words
    assert choose_tagger(load_topics(tmp_path / "topics").tagger).name == model.tagger
