"""Kiwi for one question reads it as Kiwi with all its names does."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from munjang.text import korean
from munjang.text.lean_kiwi import LeanKiwi, choose_names, load_lean_kiwi

pytest.importorskip("kiwipiepy")
ROOT = Path(__file__).resolve().parents[2]
NAMES = ("강릉", "강르", "간릉", "강른", "당릉", "당당", "서울")


def read_questions(count: int) -> list[str]:
    """Return Korean questions and news of the examples, and some with names, slips and other letters."""
    with (ROOT / "examples/data/questions.csv").open(encoding="utf-8") as file:
        asked = [row["text"] for row in csv.DictReader(file) if row["language"] == "ko"]
    with (ROOT / "examples/data/news.csv").open(encoding="utf-8") as file:
        told = [row["text"][:150] for row in csv.DictReader(file) if korean.has_hangul(row["text"])]
    odd = [
        "방탄소년단 BTS의 지민과 뷔",
        "세종대왕이 만든 훈민정음",
        "먹었슴니다 그랬댔잖아요",
        "비밀버호를 잊어버렸어요",
        "여의도 63빌딩 K팝",
    ]
    return [*odd, *asked, *told][:count]


def as_facts(tokens):
    return [(token.form, token.tag, token.start, token.len, bool(token.oov), token.typo_cost) for token in tokens]


def check_reading(lean: LeanKiwi, questions: list[str]) -> None:
    """Compare with Kiwi as it is loaded for everything else, as typed and as it may have been meant."""
    whole, slips = korean._load_kiwi(()), korean._load_slips()
    for text in questions:
        assert as_facts(lean.kiwi.tokenize(text)) == as_facts(whole.tokenize(text)), text
        options = {"typos": slips, "typo_cost_threshold": korean.SLIP_COST}
        assert as_facts(lean.kiwi.tokenize(text, **options)) == as_facts(whole.tokenize(text, **options)), text


def test_names_are_chosen_by_their_letters_whatever_their_finals_and_with_one_slip():
    dictionary = "".join(f"{name}\tNNP\t-9\n" for name in NAMES) + "댔\t다/EC + 하/VV\n"
    assert choose_names(dictionary, "강릉") == dictionary.replace("당당\tNNP\t-9\n", "").replace("서울\tNNP\t-9\n", "")


def test_questions_are_read_as_with_all_names():
    questions = read_questions(60)
    lean = load_lean_kiwi("".join(questions), workers=1)
    assert lean is not None
    check_reading(lean, questions)


@pytest.mark.slow
def test_each_question_is_read_alike_by_a_kiwi_of_its_own():
    for text in read_questions(12):
        lean = load_lean_kiwi(text, workers=1)
        assert lean is not None
        check_reading(lean, [text])


def test_another_question_may_need_all_names():
    lean = LeanKiwi(None, frozenset("강릉 "), frozenset("당"))
    assert all(map(lean.can_read, ("릉 강", "당릉")))
    assert not lean.can_read("서울")
    assert not lean.can_read("당릉", mistyped=True)


def test_without_kiwis_files_all_of_it_is_loaded(monkeypatch):
    import kiwipiepy_model

    monkeypatch.setattr(kiwipiepy_model, "get_model_path", lambda: "/nowhere")
    assert load_lean_kiwi("강릉", workers=1) is None
