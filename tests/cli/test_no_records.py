"""Input without a record is bad input for every command, and a first add that stores nothing leaves nothing behind."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.library_files import open_with_model
from munjang.file_lock import hold_lock
from munjang.library.library import Library
from munjang.library.sqlite_files import LibraryGone
from munjang.models import registry

Munjang = Callable[..., Any]
COMMANDS = [
    ["encode", "FILE", "-o", "a.npy"],
    ["encode", "FILE", "--json"],
    ["bulk", "FILE", "-o", "out", "--workers", "1"],
    ["bulk", "FILE", "--estimate"],
    ["add", "a.db", "FILE"],
    ["pairs", "FILE"],
    ["match", "FILE", "FILE"],
    ["cluster", "FILE"],
    ["map", "FILE", "-o", "map.html"],
    ["keywords", "FILE"],
    ["topics", "FILE", "-o", "topics"],
    ["rerank", "rain", "FILE"],
    ["similar", "--matrix", "FILE"],
    ["augment", "FILE", "--strategy", "bm25", "--cosine", "-o", "silver.csv"],
    ["compress", "MODEL", "--keep-layers", "0", "-o", "small", "--texts", "FILE"],
    ["adapt", "FILE", "-o", "adapted"],
    ["evaluate", "sts", "FILE"],
    ["calibrate", "FILE"],
    ["mine", "FILE", "-o", "mined.jsonl"],
]
FILES = {
    "empty.txt": b"",
    "blank.txt": b"\n\n  \n",
    "empty.jsonl": b"",
    "empty.csv": b"",
    "header.csv": b"id,text\n",
    "empty.txt.gz": gzip.compress(b""),
    "empty.json": b"[]",
}


@pytest.fixture(autouse=True)
def _tiny(tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_find_default", lambda: registry.Found("tiny", tiny_bert_folder, "package"))
    monkeypatch.setattr("munjang.library.open_store.choose_analyser", lambda *, noted=False: "bigrams")
    monkeypatch.chdir(tmp_path)


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:1] + command[2:3]))
def test_a_file_without_a_record_is_bad_input_and_nothing_is_written(
    munjang: Munjang, tiny_bert_folder: Path, command: list[str], file: str
) -> None:
    if command[0] == "bulk" and file.endswith(".json"):
        return  # a JSON list is not read in parts, which is another error
    Path(file).write_bytes(FILES[file])
    outcome = munjang(*({"FILE": file, "MODEL": str(tiny_bert_folder)}.get(word, word) for word in command))
    assert outcome.code == 3, outcome.err
    assert file.split(".")[0] in outcome.err or "no row" in outcome.err or "no pair" in outcome.err or "different text" in outcome.err
    assert outcome.out == ""
    assert names() == [file]


@pytest.mark.parametrize("command", [["encode", "-"], ["add", "a.db", "-"], ["pairs", "-"]], ids=lambda command: command[0])
def test_standard_input_without_a_line_is_bad_input(munjang: Munjang, command: list[str]) -> None:
    outcome = munjang(*command)
    assert outcome.code == 3
    assert outcome.err.endswith("munjang: stdin: holds no text, expected at least one\n")
    assert names() == []


def test_one_empty_file_among_others_is_passed_over(munjang: Munjang) -> None:
    Path("a.txt").write_text("the rain\n", encoding="utf-8")
    Path("b.txt").write_text("", encoding="utf-8")
    assert munjang("add", "a.db", "a.txt", "b.txt", "--json").json["added"] == 1
    assert munjang("bulk", "b.txt", "a.txt", "-o", "out", "--workers", "1", "--json").json["rows"] == 1


def test_a_job_whose_rows_are_all_rejected_says_so(munjang: Munjang) -> None:
    Path("a.jsonl").write_text('{"text": 1}\n{"text": 2}\n', encoding="utf-8")
    outcome = munjang("bulk", "a.jsonl", "-o", "out", "--workers", "1")
    assert outcome.code == 3
    assert "out: no row could be used, 2 were rejected\n  out/rejected.jsonl says why" in outcome.err


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('{"text": 1}\n', [], "a.jsonl line 1: 'text' is a int, expected a text"),
        ('{"text": 1}\n', ["--skip-bad"], "a.jsonl: no text is left, 1 were skipped\n  the first: a.jsonl line 1: 'text' is a int"),
        ('{"text": "rain"}\n{"text": "  "}\n', [], "a.jsonl line 2: the text is empty"),
        ('{"text": "rain"}\n{broken\n', [], "a.jsonl line 2: not JSON"),
        ('{"id": "x"}\n', [], "which column holds the text?"),
    ],
)
def test_a_first_add_that_stores_nothing_leaves_nothing_behind(munjang: Munjang, content: str, options: list[str], message: str) -> None:
    Path("a.jsonl").write_text(content, encoding="utf-8")
    outcome = munjang("add", "a.db", "a.jsonl", *options)
    assert outcome.code == 3
    assert message in outcome.err
    assert names() == ["a.jsonl"]
    assert "there is no such library" in munjang("search", "a.db", "rain").err


def test_an_add_that_fails_behind_its_first_batch_keeps_what_is_stored(munjang: Munjang) -> None:
    lines = [f'{{"text": "day {number}"}}' for number in range(3_000)]
    Path("a.jsonl").write_text("\n".join([*lines, "{broken"]), encoding="utf-8")
    assert munjang("add", "a.db", "a.jsonl").code == 3
    assert munjang("info", "a.db", "--json").json["documents"] > 0


def test_a_library_that_was_there_before_stays_even_if_it_is_empty(munjang: Munjang) -> None:
    Path("a.txt").write_text("the rain\n", encoding="utf-8")
    Path("empty.txt").write_text("", encoding="utf-8")
    assert munjang("add", "a.db", "a.txt").code == 0
    [hit] = munjang("search", "a.db", "rain", "--json").json
    assert munjang("remove", "a.db", hit["id"]).code == 0
    assert munjang("add", "a.db", "empty.txt").code == 3
    assert Path("a.db").is_file()
    outcome = munjang("search", "a.db", "rain", "--json")
    assert (outcome.code, outcome.json) == (0, [])
    assert outcome.err == "munjang: a.db: the library is empty\n  add documents with munjang add\n"
    assert "the library is empty" in munjang("search", "a.db", "rain").err


def test_a_search_that_finds_nothing_in_a_full_library_does_not_call_it_empty(munjang: Munjang) -> None:
    Path("a.txt").write_text("the rain\n", encoding="utf-8")
    assert munjang("add", "a.db", "a.txt").code == 0
    outcome = munjang("search", "a.db", "rain", "--where", "year = 3")
    assert "nothing was found" in outcome.err
    assert "empty" not in outcome.err


def test_files_that_were_beside_a_library_before_stay(munjang: Munjang) -> None:
    Path("a.db.lock").write_text("{}", encoding="utf-8")
    Path("a.db.cache").mkdir()
    Path("a.db.cache/mine.txt").touch()
    Path("empty.txt").write_text("", encoding="utf-8")
    assert munjang("add", "a.db", "empty.txt").code == 3
    assert names() == ["a.db.cache", "a.db.lock", "empty.txt"]


def test_an_empty_file_in_the_place_of_a_library_stays(munjang: Munjang) -> None:
    Path("a.db").touch()
    Path("empty.txt").write_text("", encoding="utf-8")
    assert munjang("add", "a.db", "empty.txt").code == 3
    assert Path("a.db").is_file()


def opened_new() -> Library:
    return open_with_model("a.db", None, compute="float32", create=True)


def test_a_new_library_that_another_process_has_open_stays() -> None:
    library = opened_new()
    code = "import sqlite3, sys; c = sqlite3.connect('a.db'); print(*c.execute('SELECT one FROM settings'), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "(1,)\n"
        assert not library.discard_new()
        assert Path("a.db").is_file()
        other.communicate("")
    with opened_new() as again:
        assert not again.discard_new()  # it was there when this one was opened


def test_a_new_library_that_another_writes_to_stays() -> None:
    library, other = opened_new(), opened_new()
    with other.store.writer("add"):
        assert not library.discard_new()
    other.add(["rain"])
    assert not library.discard_new()
    assert other.info().documents == 1
    other.close()


def test_what_was_added_by_another_and_closed_again_stays() -> None:
    library = opened_new()
    with opened_new() as other:
        other.add(["rain"])
    assert not library.discard_new()
    with opened_new() as again:
        assert again.info().documents == 1


def test_another_file_in_the_library_s_place_stays() -> None:
    library = opened_new()
    Path("a.db").rename("old.db")
    opened_new().close()
    assert not library.discard_new()
    assert Path("a.db").is_file()


def test_a_discarded_library_is_gone_and_can_be_made_again() -> None:
    library = opened_new()
    assert library.discard_new()
    assert names() == []
    with opened_new() as again:
        assert again.add(["rain"]).added == 1
        assert not again.discard_new()


def test_whoever_still_knows_a_library_that_was_discarded_is_told_that_it_is_gone() -> None:
    library, other = opened_new(), opened_new()
    other.store.close()
    assert library.discard_new()
    with pytest.raises(LibraryGone), other.store.writer("add"):
        pass


def test_a_lock_file_that_is_removed_while_others_wait_does_not_let_two_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    inside = 0
    most = 0
    guard = threading.Lock()

    def write(remove: bool) -> None:
        nonlocal inside, most
        for _ in range(50):
            with hold_lock(path, name="a", purpose="test", patience=10):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1
                if remove:  # the last thing a holder does: from here on the path is free
                    path.unlink()

    threads = [threading.Thread(target=write, args=(number % 2 == 0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
