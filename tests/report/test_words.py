"""The table of words: every line in both languages with the same values, and no page says anything that is not in it."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from pathlib import Path
from string import Formatter

import pytest

import munjang
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message, Word, WordTable, in_language, say

SOURCES = Path(munjang.__file__).parent
MAKERS = (
    *sorted((SOURCES / "report").glob("*.py")),
    SOURCES / "train/report.py",
    SOURCES / "train/ablate.py",
    SOURCES / "cli/inspect.py",
)
"""Every module that writes a page; words.py and training_words.py are the tables themselves."""
HANGUL = re.compile("[가-힣]")
SENTENCE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")


def slots(text: str) -> set[tuple[str, str]]:
    return {(name, spec or "") for _, name, spec, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("word", [*Word, *TrainingWord], ids=lambda word: word.name)
def test_both_languages_say_a_line_with_the_same_values(word: WordTable) -> None:
    english, korean = word.value
    assert english.strip()
    assert korean.strip()
    assert slots(english) == slots(korean)


@pytest.mark.parametrize("word", [word for word in (*Word, *TrainingWord) if word is not TrainingWord.NAMED], ids=lambda word: word.name)
def test_english_lines_are_english_and_korean_lines_korean(word: WordTable) -> None:
    english, korean = word.value
    assert not HANGUL.search(english)
    assert HANGUL.search(korean)


def test_a_message_is_english_as_a_text_and_korean_in_a_korean_report() -> None:
    inner = Message(TrainingWord.STAGE_NUMBER, number=2)
    message = Message(TrainingWord.NAMED, name=inner, line=Message(TrainingWord.TEXTS_REPEATED, count=1200))
    assert message == "stage 2: 1,200 texts that came before left out"
    assert in_language(message, "ko") == "2단계: 앞에 나온 글 1,200건 제외"
    assert in_language("자료.tsv", "ko") == "자료.tsv"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))], ids=["copy", "pickle"])
def test_a_copied_message_still_speaks_korean(copied) -> None:
    message = copied(Message(TrainingWord.STAGE_NUMBER, number=2))
    assert (str(message), in_language(message, "ko")) == ("stage 2", "2단계")


def test_a_value_with_braces_is_only_a_value() -> None:
    assert say(Word.TOPICS_OF, "ko", file="{x}.csv") == "{x}.csv의 주제"


def hard_coded(source: str) -> list[str]:
    """Return the English sentences in a module's strings: not those of docstrings, errors, help, style sheets and attributes."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        is_option = isinstance(node, ast.Call) and ast.unparse(node.func) == "Option"  # help of the command line
        if isinstance(node, ast.Raise) or is_option or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            skipped |= {id(each) for each in ast.walk(node)}
        if isinstance(node, ast.Assign) and re.search("STYLE|FONTS", " ".join(map(ast.unparse, node.targets))):
            skipped |= {id(each) for each in ast.walk(node)}
    strings = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
    ]
    shown = [re.sub(r"<style>.*?</style>|<[^>]*>?", " ", text, flags=re.DOTALL) for text in strings]
    spoken = [match for text in strings for match in re.findall(r'(?:aria-label|title|placeholder)="([^"{]+)"', text)]
    return [text for text in shown if SENTENCE.search(text) and "=" not in text and "'none'" not in text] + spoken


@pytest.mark.parametrize(
    "path", [path for path in MAKERS if not path.name.endswith("words.py")], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_no_page_has_an_english_sentence_of_its_own(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert hard_coded(source[source.index("_VERDICTS = {") :] if path.name == "inspect.py" else source) == []  # the rest is the terminal's


def test_the_search_for_sentences_finds_them() -> None:
    source = '"""A docstring of words."""\nlead = "Near bubbles are near"\nbody = f\'<svg aria-label="map of topics">{lead}</svg>\'\n'
    assert hard_coded(source) == ["Near bubbles are near", "map of topics"]


def test_the_maps_script_says_nothing_of_its_own() -> None:
    script = (SOURCES / "report/map.js").read_text(encoding="utf-8")
    assert not re.search(r'(?:textContent|placeholder|title|innerText)\s*=\s*["\']', script)
    assert not re.search(r'setAttribute\("(?:aria-label|title|placeholder)"', script)
    assert not re.search(r'createTextNode\(["`\']', script)
