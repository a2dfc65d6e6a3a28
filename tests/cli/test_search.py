"""What the commands about libraries print in their rarer cases."""

from __future__ import annotations

import csv
import json
import re
import shutil
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
    both = munjang("search", library, "raining since", "--explain", "-k", "1").out.splitlines()[-1]
    assert re.fullmatch(
        r"\w+: meaning -?\d\.\d{3} \(rank \d\); "
        r"words \d+\.\d\d \(rank 1, 0\.\d{3} of the highest\); shared: raining since; tokens: .*~.* \d\.\d\d",
        both,
    )
    meaning = munjang("search", library, "raining since", "--by", "meaning", "--explain", "-k", "1").out.splitlines()[-1]
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
    refused = munjang("serve", "--check", "--reranker", "no-such-model")
    assert refused.code == 3
    assert "no-such-model" in refused.err


@pytest.mark.usefixtures("library")
def test_serve_loads_the_models_named_or_those_of_its_libraries(
    munjang: Munjang, tiny_folder: Callable[..., Path], tiny_bert_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    other, tiny = tmp_path / "other", tmp_path / "tiny"
    shutil.copytree(tiny_folder(family="distilbert"), other)
    shutil.copytree(tiny_bert_folder, tiny)
    assert munjang("add", "second.db", "news.csv", "--model", other).code == 0
    both = ("--library", "news.db", "--library", "second.db", "--data", tmp_path / "data", "--check")
    of_libraries = munjang("serve", *both)
    assert of_libraries.code == 0, of_libraries.err
    assert (of_libraries.json["models"], of_libraries.json["libraries"]) == (["tiny", "other"], ["news", "second"])
    named = munjang("serve", "--model", other, "--model", tiny, *both)
    assert (named.json["model"], named.json["models"]) == ("other", ["other", "tiny"])
    refused = munjang("serve", "--model", tiny, *both)
    assert refused.code == 2
    assert "second: was built with the model 'other'" in refused.err


@pytest.mark.usefixtures("library")
def test_serve_works_without_a_cross_encoder(munjang: Munjang, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    monkeypatch.setattr("munjang.models.registry.BUNDLED", tmp_path / "nothing-bundled")
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path / "home"))
    outcome = munjang("serve", "--library", "news.db", "--check")
    assert outcome.code == 0, outcome.err
    assert outcome.json["rerank_model"] is None


def test_queries_are_read_from_standard_input_a_line_each(library: Path, munjang: Munjang) -> None:  # noqa: F811
    found = munjang("search", library, "-", "-k", "1", "--json", stdin="rain\n\n  \n기차\n").json
    assert [each["query"] for each in found] == ["rain", "기차"]
    assert found[0]["hits"] == munjang("search", library, "rain", "-k", "1", "--json").json
    mixed = munjang("search", library, "snow", "-", "--json", stdin="rain\n").json
    assert [each["query"] for each in mixed] == ["snow", "rain"]
    assert [each["query"] for each in munjang("search", library, "-", "--json", stdin="rain\n").json] == ["rain"]
    empty = munjang("search", library, "-", stdin="\n")
    assert (empty.code, "holds no query" in empty.err) == (3, True)
    assert munjang("search", library, "-", "-", stdin="rain\n").code == 2


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_hits_are_written_a_row_each(suffix: str, library: Path, munjang: Munjang, tmp_path: Path) -> None:  # noqa: F811
    target = tmp_path / f"hits.{suffix}"
    shown = munjang("search", library, "rain", "snow", "-k", "2", "-o", target)
    assert shown.code == 0, shown.err
    assert "written to" in shown.out
    with target.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream)) if suffix == "csv" else [json.loads(line) for line in stream]
    answers = munjang("search", library, "rain", "snow", "-k", "2", "--json").json
    assert [(row["query"], int(row["rank"]), row["id"]) for row in rows] == [
        (each["query"], rank, hit["id"]) for each in answers for rank, hit in enumerate(each["hits"], 1)
    ]
    metadata = [json.loads(row["metadata"]) if suffix == "csv" else row["metadata"] for row in rows]
    assert metadata == [hit["metadata"] for each in answers for hit in each["hits"]]
    assert munjang("search", library, "rain", "-o", tmp_path / "hits.xlsx").code == 2


def test_documents_to_look_near_are_compared_by_meaning(library: Path, munjang: Munjang) -> None:  # noqa: F811
    assert munjang("search", library, "--like", "a").code == 0
    refused = munjang("search", library, "rain", "--like", "a", "--by", "words")
    assert refused.code == 2
    assert "leave --by out" in refused.err
    assert munjang("search", library, "rain", "--like", "a").code == 0


def test_a_key_that_no_document_has_is_named_with_the_nearest_one(library: Path, munjang: Munjang) -> None:  # noqa: F811
    outcome = munjang("search", library, "rain", "--where", "yaer >= 2020")
    assert outcome.code == 0
    assert "no document has the metadata key 'yaer'; did you mean 'year'?" in outcome.err
    refused = munjang("search", library, "rain", "--where", "yaer >= 2020", "--strict")
    assert refused.code == 2
    assert "did you mean 'year'?" in refused.err
    fine = munjang("search", library, "rain", "--where", "year >= 2050", "--strict")
    assert (fine.code, "no document has" in fine.err) == (0, False)


@pytest.mark.parametrize("command", [("search", "rain"), ("add", "news.csv")])
def test_a_library_is_opened_once(library: Path, munjang: Munjang, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:  # noqa: F811
    from munjang.library import library as module
    from munjang.library import open_store

    opened: list[Path] = []

    def count_and_open(path: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return open_store.open_store(path, *arguments, **options)

    monkeypatch.setattr(module, "open_store", count_and_open)
    assert munjang(command[0], library, *command[1:]).code == 0
    assert len(opened) == 1


def test_the_old_option_for_words_still_works_and_says_what_to_use(library: Path, munjang: Munjang) -> None:  # noqa: F811
    old = munjang("search", library, "raining since", "--hybrid", "--json")
    assert old.code == 0
    assert "--by meaning" in old.err
    assert old.json == munjang("search", library, "raining since", "--json").json
    assert munjang("search", library, "rain", "--hybrid", "--by", "words").code == 2
