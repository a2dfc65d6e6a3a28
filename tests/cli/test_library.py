"""The commands about libraries, from the first add to the last remove."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.models import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/library.md").read_text(encoding="utf-8")
NEWS = PAGE.split("```csv\n")[1].split("```")[0]

Munjang = Callable[..., Any]


def blocks(language: str) -> list[str]:
    return [part.split("```")[0] for part in PAGE.split(f"```{language}\n")[1:]]


@pytest.fixture
def _tiny_default(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = registry.Found("tiny", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.setattr("munjang.library.open_store.choose_analyser", lambda *, noted=False: "bigrams")


@pytest.fixture
def news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _tiny_default: None) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "news.csv").write_text(NEWS, encoding="utf-8")
    return tmp_path / "news.csv"


@pytest.fixture
def library(news: Path, munjang: Munjang) -> Path:
    assert munjang("add", "news.db", news).code == 0
    return news.with_name("news.db")


@pytest.mark.usefixtures("news")
def test_every_documented_line_works_in_its_order(munjang: Munjang) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) >= 13
    Path("notes.csv").write_text("id,text,title\n" + "".join(f"{n},a note on topic {n},topic {n}\n" for n in range(30)), encoding="utf-8")
    assert munjang("add", "tuned.db", "notes.csv").code == 0
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "munjang"
        outcome = munjang(*arguments)
        assert outcome.code == 0, f"{line}: {outcome.err}"
        assert outcome.out, line


def test_the_documented_python_runs(tmp_path: Path, minilm: str) -> None:
    for code, begins in zip(blocks("python"), ("titles ", "2 "), strict=True):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(begins)


def test_adding_again_encodes_nothing(library: Path, munjang: Munjang) -> None:
    again = munjang("add", library, "news.csv", "--json").json
    assert (again["added"], again["changed"], again["unchanged"], again["passages"], again["documents"]) == (0, 0, 3, 0, 3)


def test_search_speaks_json(library: Path, munjang: Munjang) -> None:
    [hit] = munjang("search", library, "rain", "-k", "1", "--where", "year = 2021", "--json").json
    assert set(hit) == {"id", "score", "text", "metadata"}
    assert hit["metadata"] == {"year": "2021", "category": "weather"}
    several = munjang("search", library, "rain", "draw", "-k", "1", "--json").json
    assert [each["query"] for each in several] == ["rain", "draw"]
    assert several[1]["hits"][0]["id"] == "c"


def test_an_explanation_names_words_and_tokens(library: Path, munjang: Munjang) -> None:
    [hit] = munjang("search", library, "raining since", "--explain", "-k", "1", "--json").json
    assert hit["explanation"]["words"] == ["raining", "since"]
    assert hit["explanation"]["words_rank"] == 1
    assert all(set(pair) == {"query", "text", "cosine"} for pair in hit["explanation"]["tokens"])


def test_like_without_a_query_leaves_the_document_itself_out(library: Path, munjang: Munjang) -> None:
    assert {hit["id"] for hit in munjang("search", library, "--like", "a", "--json").json} == {"b", "c"}
    assert munjang("search", library).code == 2
    assert munjang("search", library, "--like", "nobody").code == 3


def test_a_bad_filter_is_a_usage_error_that_points(library: Path, munjang: Munjang) -> None:
    outcome = munjang("search", library, "rain", "--where", "year >")
    assert outcome.code == 2
    assert "character 7" in outcome.err


@pytest.mark.usefixtures("news")
def test_a_library_that_does_not_exist_is_named(munjang: Munjang) -> None:
    for command in (["search", "no.db", "x"], ["info", "no.db"], ["check", "no.db"], ["remove", "no.db", "x"], ["copy", "no.db", "b.db"]):
        outcome = munjang(*command)
        assert outcome.code == 3, command
        assert "no such library" in outcome.err
    assert not Path("no.db").exists()
    assert not Path("b.db").exists()


@pytest.mark.usefixtures("news")
def test_a_folder_becomes_a_document_a_file(munjang: Munjang) -> None:
    folder = Path("notes")
    (folder / "deep").mkdir(parents=True)
    (folder / "one.txt").write_text("first note\nwith two lines")
    (folder / "deep" / "two.md").write_text("second note")
    (folder / "rows.jsonl").write_text(json.dumps({"id": "r", "text": "a row"}) + "\n")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    assert munjang("add", "notes.db", folder, "--json").json["added"] == 3
    found = munjang("search", "notes.db", "note", "--json").json
    assert {hit["id"] for hit in found} == {"one.txt", "deep/two.md", "r"}


def test_another_model_is_refused_and_reencode_changes_it(library: Path, munjang: Munjang, tiny_bert_folder: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other-model"
    shutil.copytree(tiny_bert_folder, other)
    (other / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": False}))
    (other / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"passage": "passage: ", "query": "query: "}}))
    refused = munjang("search", library, "rain", "--model", other)
    assert refused.code == 2
    assert "other-model" in refused.err
    assert munjang("reencode", library, "--model", other, "--json").json["after"]["model"] == "other-model"
    assert munjang("search", library, "rain", "--model", other, "-k", "1", "--json").code == 0


def test_check_ends_with_four_when_a_vector_is_damaged(library: Path, munjang: Munjang) -> None:
    assert munjang("check", library, "--json").json == {"sound": True, "documents": 3, "findings": []}
    connection = sqlite3.connect(library)
    connection.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE row = (SELECT min(row) FROM vectors)")
    connection.commit()
    connection.close()
    outcome = munjang("check", library)
    assert outcome.code == 4
    assert "fails its checksum" in outcome.out
    assert munjang("search", library, "rain").code == 4


def test_copy_brings_vectors_along_and_can_be_repeated(library: Path, munjang: Munjang) -> None:
    assert munjang("copy", library, "copy.db", "--json").json == {"copied": 3, "documents": 3, "passages": 3}
    assert munjang("copy", library, "copy.db", "--json").json["copied"] == 0
    first, second = (munjang("search", path, "rain", "--json").json for path in (library, "copy.db"))
    assert first == second
    assert munjang("copy", library, library).code == 2
    assert munjang("check", "copy.db").code == 0
