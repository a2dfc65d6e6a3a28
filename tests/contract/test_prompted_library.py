"""A library made with a model that has prompts for queries and documents is one library for Python, the command and the server."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang import Library, SentenceEncoder
from munjang.cli.main import run
from munjang.errors import UsageError

pytest.importorskip("starlette", reason="the extra serve is not installed")

from tests.serve.conftest import running

from munjang.serve.settings import ServerSettings

PROMPTS = json.dumps({"prompts": {"query": "coffee river: ", "passage": "winter book: "}})
RECORDS = [
    {"id": "a", "text": "the rain is in the river"},
    {"id": "b", "text": "비가 많이 온다"},
    {"id": "c", "text": "a cat was sleeping on the book"},
    {"id": "d", "text": "눈이 올까요? " * 9},
]
QUESTION = "눈이 온다"


@pytest.fixture(scope="module")
def folder(tiny_folder: Callable[..., Path]) -> Path:
    return tiny_folder("bert", settings=PROMPTS)


def add_in_python(path: Path, folder: Path) -> None:
    with Library.open(path, SentenceEncoder.load(folder), analyser="bigrams") as library:
        library.add(RECORDS)


def call_command(*arguments: str) -> str:
    printed, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        code = run(list(arguments))
    assert code == 0, told.getvalue()
    return printed.getvalue()


def add_by_command(path: Path, folder: Path) -> None:
    records = path.with_suffix(".jsonl")
    records.write_text("".join(json.dumps(each) + "\n" for each in RECORDS), encoding="utf-8")
    call_command("add", str(path), str(records), "--model", str(folder))


def add_by_server(path: Path, folder: Path) -> None:
    with running(ServerSettings(data=path.parent, analyser="bigrams"), SentenceEncoder.load(folder)) as server:
        assert server.post("/api/libraries", {"name": path.stem}).status in (200, 201)
        assert server.post(f"/api/libraries/{path.stem}/add", {"records": RECORDS}).status in (200, 201)


def search_in_python(path: Path, folder: Path) -> list[tuple[str, float]]:
    with Library.open(path, SentenceEncoder.load(folder), create=False) as library:
        return [(hit.id, hit.score) for hit in library.search(QUESTION, 4, by="meaning")]


def search_by_command(path: Path, folder: Path) -> list[tuple[str, float]]:
    found = json.loads(call_command("search", str(path), QUESTION, "-k", "4", "--by", "meaning", "--model", str(folder), "--json"))
    return [(hit["id"], hit["score"]) for hit in found]


def search_by_server(path: Path, folder: Path) -> list[tuple[str, float]]:
    with running(ServerSettings(data=path.parent), SentenceEncoder.load(folder)) as server:
        answer = server.post(f"/api/libraries/{path.stem}/search", {"query": QUESTION, "k": 4, "by": "meaning"})
        assert answer.status == 200, answer.body
        return [(hit["id"], hit["score"]) for hit in answer.json["hits"]]


@pytest.mark.parametrize("add", [add_in_python, add_by_command, add_by_server])
def test_a_library_made_by_one_gives_the_same_hits_in_the_others(add: Callable[[Path, Path], None], folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    add(path, folder)
    answers = [search(path, folder) for search in (search_in_python, search_by_command, search_by_server)]
    model = SentenceEncoder.load(folder)
    documents = model.encode([each["text"] for each in RECORDS[:3]], prompt="winter book: ", normalize=True)
    scores = documents @ model.encode(QUESTION, prompt="coffee river: ", normalize=True)
    for hits in answers:
        assert [id for id, _ in hits] == [id for id, _ in answers[0]]
        assert dict(hits) == pytest.approx(dict(answers[0]), abs=1e-5)
        found = dict(hits)
        assert [found[id] for id in "abc"] == pytest.approx(scores.tolist(), abs=1e-5)


def test_no_passage_is_longer_than_the_model_reads_through_the_server(folder: Path, tmp_path: Path) -> None:
    dense = "☃☂" * 12 + " 비가 " + "abcdefgh" * 20
    with running(ServerSettings(data=tmp_path, analyser="bigrams"), SentenceEncoder.load(folder)) as server:
        assert server.post("/api/libraries", {"name": "dense", "records": [{"id": "a", "text": dense}]}).status == 201
        [entries] = server.service.libraries.get("dense").store.entries()
        spans = [(passage.start, passage.stop) for passage in entries[0].passages]
    model = SentenceEncoder.load(folder)
    assert model.max_length is not None
    counts = model.for_documents().count_tokens([dense[start:stop] for start, stop in spans])
    assert max(counts) <= model.max_length
    with Library.open(tmp_path / "python.db", model, analyser="bigrams") as library:
        library.add([{"id": "a", "text": dense}])
        [entries] = library.store.entries()
        assert [(passage.start, passage.stop) for passage in entries[0].passages] == spans


def test_a_library_made_without_prompts_is_still_read_without_them(folder: Path, tmp_path: Path) -> None:
    class Plain:
        """The model as it was before it knew about queries and documents."""

        def __init__(self, model: SentenceEncoder) -> None:
            self.name, self.dimension, self.fingerprint, self.encode = model.name, model.dimension, model.fingerprint, model.encode

    model = SentenceEncoder.load(folder)
    with Library.open(tmp_path / "plain.db", Plain(model), analyser="bigrams") as library:
        library.add(RECORDS[:3])  # it cannot count tokens, so nothing is split
        before = [(hit.id, hit.score) for hit in library.search(QUESTION, 4, by="meaning")]
    assert search_in_python(tmp_path / "plain.db", folder) == before
    assert [id for id, _ in search_by_command(tmp_path / "plain.db", folder)] == [id for id, _ in before]


def test_a_library_of_another_prompt_is_refused_with_both_prompts(folder: Path, tmp_path: Path) -> None:
    model = SentenceEncoder.load(folder)
    add_in_python(tmp_path / "words.db", folder)
    with pytest.raises(UsageError, match=r"'passage'.*, found the prompt 'prompt-"):
        Library.open(tmp_path / "words.db", model.with_prompt("something else: "))
