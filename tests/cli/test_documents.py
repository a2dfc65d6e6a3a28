"""`munjang text`, and `munjang add` with folders of documents: incremental, pruned, and unhurt by broken files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files
from tests.documents.conftest import FIXTURES, need_parsers

from munjang.cli.add import wait_for_change
from munjang.cli.document_files import list_folder
from munjang.library.library import Library
from munjang.models import registry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    need_parsers()
    made = tmp_path / "files"
    (made / "deep").mkdir(parents=True)
    for name in ("report.docx", "report.hwp", "slides.pptx"):
        shutil.copy(FIXTURES / name, made / name)
    shutil.copy(FIXTURES / "report.pdf", made / "deep")
    (made / "note.txt").write_text("비가 많이 온다", encoding="utf-8")
    (made / "rows.csv").write_text("id,text\na,the rain\n", encoding="utf-8")
    (made / "broken.odt").write_bytes(b"PK\x03\x04 no archive")
    return made


def add(munjang: Callable, library: Path, *arguments: object, model: Path) -> dict:
    done = munjang("add", library, *arguments, "--model", model, "--json")
    assert done.code == 0, done.err
    return done.json


def test_a_folder_is_added_read_again_only_where_it_changed_and_pruned(
    munjang: Callable, folder: Path, tmp_path: Path, tiny_bert_folder: Path
) -> None:
    library, model = tmp_path / "l.db", tiny_bert_folder
    first = add(munjang, library, folder, model=model)
    assert first["files"] == {"read": 4, "unchanged": 0, "broken": 1, "scanned": 0, "removed": 0}
    again = add(munjang, library, folder, model=model)
    assert (again["added"], again["changed"]) == (0, 0)
    assert again["files"] == {"read": 0, "unchanged": 4, "broken": 1, "scanned": 0, "removed": 0}
    shutil.copy(FIXTURES / "slides.pptx", folder / "report.docx")  # another format under the name, which is broken now
    (folder / "slides.pptx").unlink()
    (folder / "deep/report.pdf").unlink()
    third = add(munjang, library, folder, "--prune", model=model)
    assert third["files"]["removed"] == 2
    with Library.open(library, create=False) as opened:
        files = {opened.get([id])[0].metadata.get("file") for id in ("report.docx#1", "report.hwp#6", "note.txt")}
        assert files == {"report.docx", "report.hwp", "note.txt"}  # a file that cannot be read any more keeps what was read
        assert opened.get(["a"])  # rows of tables came from no document and stay
        assert not opened.get(["slides.pptx#1", "deep/report.pdf#1"])


def test_a_file_that_gets_shorter_loses_the_sections_that_it_no_longer_has(
    munjang: Callable, tmp_path: Path, tiny_bert_folder: Path
) -> None:
    need_parsers()
    library, path = tmp_path / "l.db", tmp_path / "notes.md"
    path.write_text("\n\n".join(f"# Part {n}\n\n{'some words of text ' * 8}" for n in range(5)), encoding="utf-8")
    add(munjang, library, path, model=tiny_bert_folder)
    path.write_text("# Only\n\na few words", encoding="utf-8")
    add(munjang, library, path, model=tiny_bert_folder)
    with Library.open(library, create=False) as opened:
        assert opened.info().documents == 1
        assert opened.get(["notes.md"])[0].metadata["heading"] == "Only"


def test_hits_cite_page_and_headings(munjang: Callable, tmp_path: Path, tiny_bert_folder: Path) -> None:
    need_parsers()
    add(munjang, tmp_path / "l.db", FIXTURES / "report.pdf", model=tiny_bert_folder)
    hits = munjang("search", tmp_path / "l.db", "변압기 덮개", "--model", tiny_bert_folder, "--json").json
    assert {hit["citation"] for hit in hits} >= {
        "report.pdf, page 2, 봄을 준비하며 › 해야 할 일",
        "report.pdf, page 1, 겨울 보고서 › 눈과 길",
    }


def test_a_broken_file_alone_is_an_error_and_leaves_no_library(munjang: Callable, tmp_path: Path, tiny_bert_folder: Path) -> None:
    need_parsers()
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    done = munjang("add", tmp_path / "l.db", tmp_path / "broken.pdf", "--model", tiny_bert_folder)
    assert done.code == 3
    assert "broken.pdf" in done.err
    assert not (tmp_path / "l.db").exists()


def test_text_prints_sections_and_names_broken_files(munjang: Callable, tmp_path: Path) -> None:
    need_parsers()
    done = munjang("text", FIXTURES / "slides.pptx", "--json")
    assert [line["slide"] for line in map(json.loads, done.out.splitlines())] == [1, 2]
    (tmp_path / "broken.hwp").write_bytes(b"x")
    done = munjang("text", tmp_path / "broken.hwp", FIXTURES / "report.hwp")
    assert done.code == 3
    assert "broken.hwp" in done.err
    assert done.out.startswith("겨울 보고서")


def test_prune_and_watch_need_a_folder(munjang: Callable, texts_file: Path, tmp_path: Path) -> None:
    assert munjang("add", tmp_path / "l.db", texts_file, "--prune").code == 2


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "files").mkdir()
    (tmp_path / "files/own.txt").write_text("own", encoding="utf-8")
    try:
        (tmp_path / "files/link.txt").symlink_to(tmp_path / "secret.txt")
    except OSError:
        pytest.skip("this system makes no links")
    assert [name for _, name in list_folder(tmp_path / "files")] == ["own.txt"]


def test_watching_waits_until_what_changed_is_still(tmp_path: Path) -> None:
    from munjang.cli.document_files import snapshot

    path = tmp_path / "a.txt"
    path.write_text("a", encoding="utf-8")
    before, looks = snapshot([str(tmp_path)]), []

    def wait(_: float) -> None:
        looks.append(None)
        if len(looks) in (2, 3):
            path.write_text("a" * 10 * len(looks), encoding="utf-8")

    wait_for_change([str(tmp_path)], before, wait=wait)
    assert len(looks) == 4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_a_watched_folder_and_its_library_stay_in_step_until_interrupted(tmp_path: Path, tiny_bert_folder: Path) -> None:
    files, library = tmp_path / "files", tmp_path / "l.db"
    files.mkdir()
    for name in ("kept", "changed", "gone"):
        (files / f"{name}.html").write_text(f"<h1>{name}</h1><p>the first text of {name}</p>", encoding="utf-8")
    (files / "broken.odt").write_bytes(b"PK\x03\x04 no archive")
    command = [sys.executable, "-m", "munjang.cli.main", "add", str(library), str(files), "--watch", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "--model", str(tiny_bert_folder)], **pipes, text=True, preexec_fn=hear_interrupts) as process:
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            assert (first["documents"], first["files"]["broken"]) == (3, 1)
            (files / "changed.html").write_text("<h1>changed</h1><p>another text</p>", encoding="utf-8")
            (files / "gone.html").unlink()
            (files / "new.html").write_text("<h1>new</h1><p>a new text</p>", encoding="utf-8")
            second = json.loads(process.stdout.readline())
            assert second["files"] == {"read": 2, "unchanged": 1, "broken": 1, "scanned": 0, "removed": 1}
            with Library.open(library, create=False) as opened:
                assert "another text" in opened.get(["changed.html"])[0].text
                assert [each.id for each in opened.get(["kept.html", "gone.html", "new.html"])] == ["kept.html", "new.html"]
            (files / "broken.odt").unlink()
            assert json.loads(process.stdout.readline())["files"]["broken"] == 0
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 130
        finally:
            process.kill()
    with Library.open(library, create=False) as opened:
        assert opened.check() == []
        assert opened.info().documents == 3


def hear_interrupts() -> None:
    """A shell that starts tests in the background lets them ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_an_add_that_is_killed_leaves_a_whole_library_and_is_continued(munjang: Callable, tmp_path: Path, tiny_bert_folder: Path) -> None:
    need_parsers()
    files, library = tmp_path / "files", tmp_path / "l.db"
    files.mkdir()
    for number in range(150):
        text = "\n\n".join(f"# Part {number} {part}\n\n{'some words of the text ' * 6}" for part in range(8))
        (files / f"{number:03}.md").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "munjang.cli.main", "add", str(library), str(files), "--model", str(tiny_bert_folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if library.exists() and library.with_name("l.db-wal").exists() and library.with_name("l.db-wal").stat().st_size > 100_000:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with Library.open(library, create=False) as opened:
        assert opened.check() == []
    add(munjang, library, files, model=tiny_bert_folder)
    with Library.open(library, create=False) as opened:
        assert opened.check() == []
        assert opened.info().documents == 150 * 8


def test_every_line_and_block_of_the_page_works(
    munjang: Callable, tmp_path: Path, tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_parsers()
    tiny = registry.Found("tiny", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    page = Path(__file__).parents[2] / "docs/documents.md"
    monkeypatch.chdir(tmp_path)
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) == 5
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, {})
