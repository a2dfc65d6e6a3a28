"""What the commands about libraries print in their rarer cases."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_library import _tiny_default, library, news  # noqa: F401

Munjang = Callable[..., Any]


def test_a_long_document_is_shown_by_its_passage_and_place(library: Path, munjang: Munjang, tmp_path: Path) -> None:  # noqa: F811
    text = " ".join(f"The train number {number} is on its way to the river." for number in range(30))
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "long", "text": text}) + "\n", encoding="utf-8")
    assert munjang("add", "long.db", "long.jsonl", "--passage-characters", "200").code == 0
    [hit] = munjang("search", "long.db", "the train number 17", "-k", "1", "--json").json
    assert text[hit["start"] : hit["stop"]] == hit["passage"]
    assert 0 < len(hit["passage"]) < len(text)
    shown = munjang("search", "long.db", "the train number 17", "-k", "1").out
    assert f"{hit['start']:,}–{hit['stop']:,} of {len(text):,}" in shown
    whole = munjang("search", library, "rain", "-k", "1")
    assert "whole" in whole.out


def test_finding_nothing_is_said_and_is_no_failure(library: Path, munjang: Munjang) -> None:  # noqa: F811
    outcome = munjang("search", library, "rain", "--where", "year = 1800")
    assert (outcome.code, outcome.out) == (0, "")
    assert "nothing was found" in outcome.err
    assert munjang("search", library, "rain", "--where", "year = 1800", "--json").json == []


def test_an_explanation_is_a_line_for_people(library: Path, munjang: Munjang) -> None:  # noqa: F811
    both = munjang("search", library, "raining since", "--hybrid", "--explain", "-k", "1").out.splitlines()[-1]
    assert re.fullmatch(
        r"\w+: meaning -?\d\.\d{3} \(rank \d\); words \d+\.\d\d \(rank 1\); shared: raining since; tokens: .*~.* \d\.\d\d", both
    )
    meaning = munjang("search", library, "raining since", "--explain", "-k", "1").out.splitlines()[-1]
    assert "meaning" in meaning
    assert "words" not in meaning
    near = munjang("search", library, "--like", "a", "--explain", "-k", "1")
    assert re.fullmatch(r"[bc]: meaning -?\d\.\d{3} \(rank \d\)", near.out.splitlines()[-1])
    assert munjang("search", library, "--like", "a", "--explain", "-k", "1", "--json").json[0]["explanation"]["tokens"] == []


def test_info_and_remove_speak_json(library: Path, munjang: Munjang) -> None:  # noqa: F811
    facts = munjang("info", library, "--json").json
    assert (facts["documents"], facts["dimension"], facts["bytes"]) == (3, 32, library.stat().st_size)
    assert munjang("remove", library, "a", "a", "nobody", "--json").json == {"removed": 1, "unknown": 1, "documents": 2}


def test_bad_lines_that_are_skipped_are_shown(library: Path, munjang: Munjang, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "bad.jsonl").write_text('{"id": "d", "text": "the sun"}\n{broken\n', encoding="utf-8")
    assert munjang("add", library, "bad.jsonl").code == 3
    outcome = munjang("add", library, "bad.jsonl", "--skip-bad", "--json")
    assert (outcome.json["added"], outcome.json["skipped"], outcome.json["documents"]) == (1, 1, 4)
    assert "skipped bad.jsonl line 2" in outcome.err


def test_a_folder_without_texts_is_refused(library: Path, munjang: Munjang, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "cat.png").write_bytes(b"png")
    outcome = munjang("add", library, "pictures")
    assert outcome.code == 3
    assert "pictures: holds no file that can be added, expected txt, md, csv, tsv, jsonl, json or parquet" in outcome.err


@pytest.mark.usefixtures("library")
def test_serve_takes_the_librarys_own_model_and_names_what_it_leaves_out(munjang: Munjang, tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "broken.db").write_bytes(b"no SQLite file at all" * 50)
    outcome = munjang("serve", "--library", "news.db", "--data", tmp_path / "data", "--check")
    assert outcome.code == 0, outcome.err
    assert outcome.json["libraries"] == ["news"]
    assert "not served: " in outcome.err
    assert "broken.db" in outcome.err
    alone = munjang("serve", "--check")
    assert alone.json["model"] == "tiny"
    refused = munjang("serve", "--check", "--rerank-model", "no-such-model")
    assert refused.code == 3
    assert "no-such-model" in refused.err


@pytest.mark.usefixtures("library")
def test_serve_works_without_a_cross_encoder(munjang: Munjang, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    monkeypatch.setattr("munjang.models.registry.BUNDLED", tmp_path / "nothing-bundled")
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path / "home"))
    outcome = munjang("serve", "--library", "news.db", "--check")
    assert outcome.code == 0, outcome.err
    assert outcome.json["rerank_model"] is None
