"""`--language` and the locale: every command that writes a report writes it in Korean where that is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_commands import LEAVES
from tests.report.visible import LATIN, english_words, language_of, visible

from munjang.cli.options import report_language

Call = Callable[..., Any]
NAMES = frozenset({"munjang", "topics", "similar", "matrix", "inspect", "CLS", "SEP", "UNK", "mean", "NPMI", "graph", "kmeans"})
"""Commands, options, special tokens and what users name: not words of ours."""
PLACES, SIGHTS = ("서울", "부산", "대구", "광주"), ("고양이를", "겨울 눈을", "기차를", "커피 잔을")
TEXTS = [f"{place}에서 {sight} 보았다" for place in PLACES for sight in SIGHTS]
REPORTING = (
    "topics fit",
    "topics report",
    "keywords",
    "map",
    "similar",
    "inspect",
    "train",
    "adapt",
    "distill",
    "ablate",
    "classify fit",
    "classify evaluate",
)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "글.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def made(munjang: Call, page: Path, *arguments: str | Path, names: frozenset[str] = NAMES) -> list[str]:
    """Run a command that writes a page; return what a reader of the page sees, which is Korean."""
    outcome = munjang(*arguments)
    assert outcome.code == 0, outcome.err
    html = page.read_text(encoding="utf-8")
    assert language_of(html) == "ko"
    assert english_words(html, names) == []
    return visible(html)


@pytest.mark.parametrize("words", REPORTING)
def test_every_command_that_writes_a_report_takes_the_option(words: str) -> None:
    flags = {flag for parameter in dict(LEAVES)[words].params for flag in parameter.opts}
    assert "--language" in flags


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_no_other_command_writes_a_page(words: str, command: Any) -> None:
    says = " ".join([command.help or "", command.epilog or "", *(getattr(option, "help", None) or "" for option in command.params)])
    assert (".html" not in says and "a report" not in says) or words in REPORTING


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko"}, "ko"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko_KR.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "ko_KR.UTF-8", "LC_MESSAGES": "ko_KR.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "C", "LC_ALL": "ko_KR.eucKR"}, "ko"),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "Korean_Korea.949"}, "ko"),
        ({"LANG": "kok_IN.UTF-8"}, "en"),
    ],
)
def test_the_locale_is_read_in_the_order_of_posix(environment: dict[str, str], language: str) -> None:
    assert report_language(None, environment=environment) == language
    assert report_language("en", environment=environment) == "en"
    assert report_language("ko", environment=environment) == "ko"


def test_a_korean_locale_gives_a_korean_report_and_the_option_wins(
    munjang: Call, texts: Path, tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "matrix.html"
    arguments = ("similar", "--matrix", texts, "-m", tiny_bert_folder, "-o", page)
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    outcome = munjang(*arguments)
    assert outcome.code == 0, outcome.err
    assert language_of(page.read_text(encoding="utf-8")) == "ko"
    assert "rows" in outcome.out  # the command line stays English
    assert munjang(*arguments, "--language", "en").code == 0
    assert language_of(page.read_text(encoding="utf-8")) == "en"


def test_another_language_is_refused(munjang: Call, texts: Path, tmp_path: Path) -> None:
    outcome = munjang("similar", "--matrix", texts, "-o", tmp_path / "x.html", "--language", "fr")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--language" in outcome.err


def test_the_similarity_matrix(munjang: Call, texts: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    flags = ("-m", tiny_bert_folder, "--language", "ko")
    names = NAMES | set(LATIN.findall(tiny_bert_folder.name))
    seen = made(munjang, tmp_path / "m.html", "similar", "--matrix", texts, "-o", tmp_path / "m.html", *flags, names=names)
    assert "글 16 x 16건의 유사도" in seen
    assert munjang("similar", "--matrix", texts, "-o", tmp_path / "m.svg", *flags).code == 0
    assert english_words((tmp_path / "m.svg").read_text(encoding="utf-8")) == []


def test_one_sentence_and_two(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    names = NAMES | set(LATIN.findall(tiny_bert_folder.name))
    flags = ("-m", tiny_bert_folder, "-o", tmp_path / "i.html", "--language", "ko")
    seen = made(munjang, tmp_path / "i.html", "inspect", "비가 많이 온다", *flags, names=names)
    assert {"토큰", "층", "임베딩", "1층", "풀링 (mean)", "글자 위치", "예"} <= set(seen)
    seen = made(munjang, tmp_path / "i.html", "inspect", "비가 많이 온다", "눈이 온다", *flags, names=names)
    assert {"두 문장을 토큰끼리 견주기", "토큰과 토큰의 코사인 유사도", "점수에 더하는 몫"} <= set(seen)


def test_keywords_map_and_topics(munjang: Call, texts: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    page, flags = tmp_path / "page.html", ("-m", tiny_bert_folder, "--language", "ko")
    assert "글 16건" in made(munjang, page, "keywords", texts, "--html", page, *flags)
    names = NAMES | {"txt"}
    assert "글 16건, 색은 군집" in made(munjang, page, "map", texts, "-o", page, "--k", "2", "--layout", "pca", *flags, names=names)
    fit = ("topics", "fit", texts, "--html", page, "--min-size", "2", "--method", "kmeans", "--topics", "2", "-o", tmp_path / "model")
    assert "글.txt의 주제" in made(munjang, page, *fit, *flags, names=names)
    assert "주제" in made(munjang, page, "topics", "report", tmp_path / "model", "-o", page, "--language", "ko")


def test_the_column_that_colours_a_map_is_named(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    table, page = tmp_path / "글.csv", tmp_path / "page.html"
    table.write_text("text,지역\n" + "".join(f"{text},{text[:2]}\n" for text in TEXTS), encoding="utf-8")
    arguments = ("map", table, "-o", page, "--colour", "지역", "--layout", "pca", "-m", tiny_bert_folder, "--language", "ko")
    assert "글 16건, 색은 지역 열" in made(munjang, page, *arguments, names=NAMES | {"csv"})


class TestTraining:
    """Reports of everything that trains."""

    NAMES = NAMES | {"tsv", "txt", "out", "float", "PCA", "TSDAE", "CoSENT", "tsdae", "distillation", "regression"}
    METRICS = frozenset({"spearman", "pearson", "cosine", "euclidean", "manhattan", "dot"})

    @pytest.fixture
    def scored(self, tmp_path: Path) -> Path:
        pytest.importorskip("torch", reason="the extra train is not installed")
        pytest.importorskip("accelerate", reason="the extra train is not installed")
        rows = [f"{text}\t{other}\t{number % 6}" for number, (text, other) in enumerate(zip(TEXTS, reversed(TEXTS), strict=True))]
        path = tmp_path / "점수.tsv"
        path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
        return path

    def named(self, folder: Path) -> frozenset[str]:
        return self.NAMES | self.METRICS | set(LATIN.findall(folder.name))

    def test_a_recipe(self, munjang: Call, scored: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
        data = f"path = {json.dumps(str(scored))}\nlabel_range = [0, 5]\n"
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            f'output = "out"\n[model]\nbase = {json.dumps(str(tiny_bert_folder))}\n[[stage]]\nsteps = 2\nbatch_size = 4\n'
            f"[[stage.data]]\n{data}[stage.dev]\n{data}[stage.test]\n{data}",
            encoding="utf-8",
        )
        page = tmp_path / "out/report.html"
        seen = made(munjang, page, "train", recipe, "--language", "ko", names=self.named(tiny_bert_folder))
        assert {"out 학습 보고서", "손실", "검증 점수", "시험 점수", "스텝", "1단계", "임의의 쌍", "비슷한 쌍", "쌍의 비율"} <= set(seen)
        assert any("점수.tsv: 16행, CoSENT" in text and "고른 까닭" in text for text in seen)
        assert "CoSENT: cosines in the order" in (tmp_path / "out/README.md").read_text(encoding="utf-8")  # the card is English

    def test_an_adaptation(self, munjang: Call, scored: Path, texts: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
        arguments = ("adapt", texts, "-m", tiny_bert_folder, "--steps", "2", "--batch-size", "4", "-o", tmp_path / "out")
        seen = made(munjang, tmp_path / "out/report.html", *arguments, "--language", "ko", names=self.named(tiny_bert_folder))
        assert any("TSDAE, 조각의 60%를 지우고" in text for text in seen)

    def test_a_distillation(self, munjang: Call, scored: Path, texts: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
        arguments = ("distill", "--teacher", tiny_bert_folder, "--layers", "0", "--texts", texts, "--steps", "2", "--batch-size", "4")
        page = tmp_path / "out/report.html"
        seen = made(munjang, page, *arguments, "-o", tmp_path / "out", "--language", "ko", names=self.named(tiny_bert_folder))
        assert any("증류: " in text for text in seen)
        assert any("의 벡터, 32차원" in text for text in seen)

    def test_an_ablation(self, munjang: Call, scored: Path, tmp_path: Path) -> None:
        small = ("--scratch-layers", "1", "--scratch-width", "16", "--seeds", "1", "--steps", "1", "--batch-size", "4")
        data = ("--sts", scored, "--test", scored, "--scale", "0", "5", "--only", "pooling", "-o", tmp_path / "table")
        page, names = tmp_path / "table/ablation.html", self.NAMES | {"max", "cls"}
        seen = made(munjang, page, "ablate", *data, *small, "--language", "ko", names=names)
        assert {"제거 실험: 풀링, 목적 함수, 벡터 이어 붙이기", "스피어만 상관 × 100", "풀링"} <= set(seen)
