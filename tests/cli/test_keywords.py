"""`munjang keywords`, `munjang cluster` and `munjang map`, and every line of their pages."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry

ROOT = Path(__file__).parents[2]
TEXTS = "key,part,title\nx,a,the heavy rain in the river\ny,b,a cat and the rain\nz,a,the heavy rain in the river\nw,,cat\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text(TEXTS, encoding="utf-8")
    return path


@pytest.fixture
def call(munjang: Callable[..., Any], file: Path, tiny_bert_folder: Path) -> Callable[..., Any]:
    columns = ("--text-column", "title", "--id-column", "key", "--model", tiny_bert_folder, "--analyser", "plain")
    return lambda command, *more: munjang(command, file, *columns, *more)


def test_keywords_stand_in_their_texts(call: Callable[..., Any]) -> None:
    found = call("keywords", "--json").json
    assert [row["id"] for row in found] == ["x", "y", "z", "w"]
    for row in found:
        assert row["keywords"]
        for word in row["keywords"]:
            assert all(row["text"][start:end] == word["text"] for start, end in word["places"])
    assert found[0]["keywords"] == found[2]["keywords"]


def test_keywords_are_shown_written_and_marked(call: Callable[..., Any], tmp_path: Path) -> None:
    assert "heavy rain" in call("keywords").out
    assert "the heavy rain in the river" in call("keywords", "--highlight").out
    outcome = call("keywords", "-o", tmp_path / "k.csv", "--html", tmp_path / "k.html")
    assert outcome.code == 0, outcome.err
    with (tmp_path / "k.csv").open(encoding="utf-8") as handle:
        assert list(next(csv.DictReader(handle))) == ["row", "rank", "keyword", "score"]
    assert "<mark" in (tmp_path / "k.html").read_text(encoding="utf-8")


def test_wrong_names_and_ranges_are_usage_errors(call: Callable[..., Any]) -> None:
    assert call("keywords", "--html", "page.txt").code == 2
    assert call("keywords", "--min-words", "3", "--max-words", "2").code == 2
    assert call("map", "-o", "map.png").code == 2
    assert call("cluster", "-k", "9").code == 2
    assert call("map", "-o", "map.html", "--colour", "nothing").code == 3


def test_clusters_are_named_and_written(call: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    found = call("cluster", "-k", "2", "--json").json
    assert sum(group["size"] for group in found["clusters"]) == 4
    assert found["labels"][0] == found["labels"][2]
    assert all(group["phrases"] for group in found["clusters"])
    assert call("cluster", "-k", "2", "-o", tmp_path / "c.csv").code == 0
    with (tmp_path / "c.csv").open(encoding="utf-8") as handle:
        assert list(next(csv.DictReader(handle))) == ["key", "part", "title", "cluster", "phrases"]


def test_a_map_is_coloured_by_a_column(call: Callable[..., Any], tmp_path: Path) -> None:
    found = call("map", "-o", tmp_path / "m.html", "--colour", "part", "--layout", "pca", "--json").json
    assert found == {"texts": 4, "groups": 2, "output": str(tmp_path / "m.html")}
    assert '"name":"none"' in (tmp_path / "m.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["keywords", "cluster", "map"])
def test_an_empty_file_is_named(command: str, munjang: Callable[..., Any], tmp_path: Path, tiny_bert_folder: Path) -> None:
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    more = ("-o", tmp_path / "m.html") if command == "map" else ()
    outcome = munjang(command, tmp_path / "empty.txt", "--model", tiny_bert_folder, *more)
    assert outcome.code == 3
    assert "holds no text" in outcome.err


@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")  # the tiny model reads few tokens
@pytest.mark.parametrize("name", ["keywords", "clusters"])
def test_every_line_and_block_of_the_pages_works(
    name: str, munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kiwipiepy", reason="the pages split Korean")
    pytest.importorskip("sklearn", reason="the pages cluster")
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.chdir(tmp_path)
    page = ROOT / f"docs/{name}.md"
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) >= 5
    scope: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, scope)


def test_how_many_clusters_were_chosen_is_said(call: Callable[..., Any]) -> None:
    outcome = call("cluster", "--method", "kmeans", "--json")
    assert outcome.code == 0, outcome.err
    assert re.search(r"\d clusters, chosen by the best silhouette; -k overrides it", outcome.err)
    assert "silhouette" not in call("cluster", "-k", "2", "--json").err


def test_places_of_keywords_are_those_of_the_shown_text(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nfd.txt").write_text(unicodedata.normalize("NFD", "강에 비가 많이 온다\n"), encoding="utf-8")
    [row] = munjang("keywords", tmp_path / "nfd.txt", "--analyser", "plain", "--model", tiny_bert_folder, "--json").json
    assert row["text"] == "강에 비가 많이 온다"
    assert row["keywords"]
    assert all(row["text"][start:end] == word["text"] for word in row["keywords"] for start, end in word["places"])


@pytest.mark.filterwarnings("default::munjang.models.long_text.TruncationWarning")
def test_long_texts_are_counted_among_texts_not_among_phrases(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("the rain and the river " * 50 + "\na cat\nthe heavy rain\n", encoding="utf-8")
    outcome = munjang("keywords", tmp_path / "long.txt", "--analyser", "plain", "--model", tiny_bert_folder)
    assert "1 of 3 texts is longer" in outcome.err
    assert outcome.err.count("longer than") == 1
