"""`--dictionary`, as docs/dictionary.md shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry


def test_every_line_and_block_of_the_page_works(
    munjang: Callable, tmp_path: Path, tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    tiny = registry.Found("tiny", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    page = Path(__file__).parents[2] / "docs/dictionary.md"
    monkeypatch.chdir(tmp_path)
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) == 5
    assert munjang("info", "goods.db", "--json").json["dictionary"] == 7
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, {})


def test_a_wrong_line_is_named_and_nothing_is_added(munjang: Callable, tmp_path: Path, texts_file: Path, tiny_bert_folder: Path) -> None:
    (tmp_path / "words.tsv").write_text("wrod\t가\n", encoding="utf-8")
    done = munjang("add", tmp_path / "l.db", texts_file, "--dictionary", tmp_path / "words.tsv", "--model", tiny_bert_folder)
    assert done.code == 3
    assert "words.tsv line 1" in done.err
    assert not (tmp_path / "l.db").exists()
