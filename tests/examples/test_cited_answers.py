"""Answers with citations, by the real openai client against a small server on this machine that answers from the sources it is sent."""

from __future__ import annotations

import json
import re
import runpy
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import munjang as munjang
from tests.cli.doc_pages import run_lines, write_shown_files

ROOT = Path(__file__).parents[2]

pytest.importorskip("openai", reason="the openai client is not installed")


@dataclass
class FakeModel:
    """Answers with the sentence of the sources that shares most with the question, or with what `says` holds."""

    address: str = ""
    says: str | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    def reply(self, body: dict[str, Any]) -> str:
        self.asked.append(body)
        if self.says is not None:
            return self.says
        sources, _, question = body["messages"][1]["content"].rpartition("\n\nQuestion: ")
        wanted = _parts(question)
        found = [
            (len(wanted & _parts(sentence)), -int(number), sentence)
            for number, text in re.findall(r"\[(\d+)\] [^\n]*\n(.*?)(?=\n\n\[\d+\] |\Z)", sources, re.DOTALL)
            for sentence in re.split(r"(?<=[.!?])\s+|\n+", text)
        ]
        _, number, sentence = max(found)
        return f"{sentence} [{-number}]"


def _parts(text: str) -> set[str]:
    """Return whole English words, and pairs of letters of Korean ones."""
    words = [word.lower() for word in re.findall(r"\w+", text)]
    korean = "".join(word for word in words if not word.isascii())
    return {word for word in words if word.isascii() and len(word) > 3} | {korean[at : at + 2] for at in range(len(korean) - 1)}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModel]:
    fake = FakeModel()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/chat/completions"
            message = {"role": "assistant", "content": fake.reply(body)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
            raw = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield fake
        server.shutdown()
        thread.join()


@pytest.fixture
def example(model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return runpy.run_path(str(ROOT / "examples/14_cited_answers.py"), run_name="__main__")


def test_answers_cite_the_file_and_the_heading(example: dict[str, Any], model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    answers = example["answers"]
    assert [answer.is_cited for answer in answers] == [True] * 3
    assert [answer.sources[0].citation for answer in answers] == [
        "leave.html, 휴가 안내 › 연차 휴가",
        "equipment.html, Equipment › Laptops",
        "leave.html, 휴가 안내 › 병가",
    ]
    assert "3월 31일" in answers[0].text
    assert "two hours" in answers[1].text
    assert model.asked[0]["messages"][0]["content"] == example["RULES"]


def test_a_source_that_was_not_given_is_seen(example: dict[str, Any]) -> None:
    hits = example["hits"]
    assert len(hits) == 3
    wrong = example["check_citations"]("It is so [2, 9]. And so [0].", hits)
    assert (wrong.sources, wrong.unknown, wrong.is_cited) == ([hits[1]], [9, 0], False)
    assert not example["check_citations"]("I know it.", hits).is_cited


def test_the_page_works(
    munjang: Callable[..., Any], model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs/answers.md"
    monkeypatch.chdir(tmp_path)
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) == 2
    capsys.readouterr()
    [block] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    assert "3월 31일" in names["text"]
    assert names["unknown"] == []
    assert "leave.html, 휴가 안내 › 연차 휴가 | " in capsys.readouterr().out
