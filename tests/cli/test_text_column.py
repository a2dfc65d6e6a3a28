"""A first record without a text changes nothing but itself, in every command that reads texts; a doubtful guess is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.models import registry

Munjang = Callable[..., Any]
GOOD = [{"id": f"n{number}", "sentence": text} for number, text in enumerate(["the rain", "the sun", "the moon"])]


@pytest.fixture(autouse=True)
def _tiny(tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_find_default", lambda: registry.Found("tiny", tiny_bert_folder, "package"))
    monkeypatch.setattr("munjang.library.open_store.choose_analyser", lambda *, noted=False: "bigrams")
    monkeypatch.chdir(tmp_path)


def write(name: str, *records: dict[str, object]) -> str:
    Path(name).write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return name


def test_bulk_rejects_a_first_record_without_a_text_and_encodes_the_others(munjang: Munjang) -> None:
    pytest.importorskip("pyarrow")
    from munjang.bulk.output import open_output

    file = write("a.jsonl", {"id": "x"}, *GOOD)
    report = munjang("bulk", file, "-o", "out", "--keep-text", "--workers", "1", "--json").json
    assert (report["rows"], report["rejected"]) == (3, 1)
    assert [text for block in open_output("out").blocks() for text in block.texts or []] == ["the rain", "the sun", "the moon"]
    rejected = [json.loads(line) for line in Path("out/rejected.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(each["line"], each["reason"]) for each in rejected] == [(1, "no column 'sentence', found 'id'")]


def test_bulk_takes_a_named_column_that_the_first_record_lacks(munjang: Munjang) -> None:
    pytest.importorskip("pyarrow")
    file = write("a.jsonl", {"id": "x"}, *({"id": str(n), "said": "rain", "by": "me"} for n in range(3)))
    report = munjang("bulk", file, "-o", "out", "--text-column", "said", "--workers", "1", "--json").json
    assert (report["rows"], report["rejected"]) == (3, 1)


def test_add_refuses_a_first_record_without_a_text_by_its_line_or_skips_it(munjang: Munjang) -> None:
    file = write("a.jsonl", {"id": "x"}, *GOOD)
    refused = munjang("add", "a.db", file)
    assert refused.code == 3
    assert "a.jsonl line 1: no column 'sentence', found 'id'" in refused.err
    report = munjang("add", "a.db", file, "--skip-bad", "--json").json
    assert (report["added"], report["skipped"]) == (3, 1)
    assert {hit["text"] for hit in munjang("search", "a.db", "rain", "--json").json} == {"the rain", "the sun", "the moon"}


@pytest.mark.parametrize(
    "command",
    [
        ["encode", "a.jsonl", "--json"],
        ["bulk", "a.jsonl", "-o", "out"],
        ["add", "a.db", "a.jsonl"],
        ["pairs", "a.jsonl"],
        ["match", "a.jsonl", "a.jsonl"],
        ["cluster", "a.jsonl"],
        ["keywords", "a.jsonl"],
        ["topics", "a.jsonl", "-o", "topics"],
        ["similar", "--matrix", "a.jsonl"],
        ["rerank", "rain", "a.jsonl"],
        ["map", "a.jsonl", "-o", "map.html"],
        ["compress", "MODEL", "--keep-layers", "0", "-o", "small", "--texts", "a.jsonl"],
        ["adapt", "a.jsonl", "-o", "adapted"],
    ],
    ids=lambda command: command[0],
)
def test_ids_alone_are_refused_with_the_columns_and_the_option(munjang: Munjang, tiny_bert_folder: Path, command: list[str]) -> None:
    write("a.jsonl", {"id": "x"}, {"id": "y"})
    outcome = munjang(*(str(tiny_bert_folder) if word == "MODEL" else word for word in command))
    assert outcome.code == 3, outcome.err
    assert "a.jsonl: which column holds the text? found 'id'" in outcome.err
    assert "--text-column" in outcome.err


@pytest.mark.parametrize("command", [["encode", "a.jsonl", "-o", "a.npy"], ["add", "a.db", "a.jsonl"], ["pairs", "a.jsonl"]])
def test_a_guess_among_several_columns_is_said_once(munjang: Munjang, command: list[str]) -> None:
    write("a.jsonl", *({"title": f"day {n}", "body": f"it rained {n} times"} for n in range(3)))
    said = "munjang: text column: 'body' (guessed; name it with --text-column)\n"
    assert munjang(*command).err.count(said) == 1
    assert "guessed" not in munjang(*command, "--text-column", "title").err


def test_bulk_says_a_guess_once_for_all_its_files(munjang: Munjang) -> None:
    pytest.importorskip("pyarrow")
    for name in ("a.jsonl", "b.jsonl"):
        write(name, {"title": "a day", "body": "it rained"})
    outcome = munjang("bulk", "a.jsonl", "b.jsonl", "-o", "out", "--workers", "1")
    assert outcome.err.count("text column: 'body' (guessed; name it with --text-column)") == 1


def test_a_column_called_text_and_an_only_column_need_no_word(munjang: Munjang) -> None:
    write("a.jsonl", {"text": "the rain", "title": "weather"})
    write("b.jsonl", {"id": "1", "utterance": "the rain"})
    Path("c.txt").write_text("the rain\n", encoding="utf-8")
    for name in ("a.jsonl", "b.jsonl", "c.txt"):
        outcome = munjang("encode", name, "-o", "a.npy", "--json")
        assert (outcome.code, "guessed" in outcome.err) == (0, False)


def test_mine_takes_the_column_of_its_corpus(munjang: Munjang) -> None:
    write("pairs.jsonl", *({"anchor": f"rain {n}", "positive": f"wet {n}"} for n in range(3)))
    write("corpus.jsonl", *({"key": str(n), "said": f"snow {n}"} for n in range(5)))
    assert "--text-column" in munjang("mine", "pairs.jsonl", "--corpus", "corpus.jsonl", "-o", "t.jsonl").err
    assert munjang("mine", "pairs.jsonl", "--corpus", "corpus.jsonl", "--text-column", "said", "-o", "t.jsonl").code == 0
    assert "snow" in Path("t.jsonl").read_text(encoding="utf-8")
