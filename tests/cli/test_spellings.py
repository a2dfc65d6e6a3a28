"""One word means one thing in every command, and what Munjang 0.1 called it still works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.commands import COMMANDS, load_command
from munjang.cli.options import OLD_SPELLINGS

Munjang = Callable[..., Any]


def parameters() -> list[tuple[str, Any]]:
    found = []
    for entry in COMMANDS:
        command = load_command(entry)
        inner = getattr(command, "commands", {})
        for name, each in inner.items() or [("", command)]:
            found += [(f"{entry.name} {name}".strip(), parameter) for parameter in each.params if parameter.param_type_name == "option"]
    return found


def test_k_is_the_short_form_of_top_or_of_clusters_and_of_nothing_else() -> None:
    with_k = {name: set(parameter.opts) for name, parameter in parameters() if "-k" in parameter.opts}
    clusters = {"cluster", "map", "evaluate clustering"}
    assert with_k == {name: {"-k", "--clusters" if name in clusters else "--top"} for name in with_k}
    assert set(with_k) >= clusters | {"search", "rerank", "pairs", "keywords", "topics find", "demo", "evaluate retrieval"}
    assert all("-k" in parameter.opts for _, parameter in parameters() if {"--top", "--clusters"} & set(parameter.opts))


def test_no_command_shows_an_old_spelling_beside_the_new_one() -> None:
    shown = {option: name for name, parameter in parameters() for option in parameter.opts}
    for old in ("--k", "--dimension", "--rerank-model", "--text-columns"):
        assert old not in shown, shown.get(old)
    formats = {name for name, parameter in parameters() if "--format" in parameter.opts and parameter.name != "format"}
    assert formats == set()
    assert not any(name == "bulk" and "--format" in parameter.opts for name, parameter in parameters())
    assert set(OLD_SPELLINGS) == {"--k", "--dimension", "--rerank-model", "--text-columns", "--format"}


def test_every_command_with_a_model_to_encode_with_takes_a_pooling() -> None:
    cross = {"rerank", "evaluate nli"}  # a cross-encoder pools nothing
    training = {"ablate", "bench train"}  # tries every pooling; trains a model of its own making
    models = {name for name, parameter in parameters() if "--model" in parameter.opts} - cross - training
    assert models | {"export", "compress"} == {name for name, parameter in parameters() if "--pooling" in parameter.opts}


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (("cluster", "FILE", "--clusters", "2", "--json"), ("cluster", "FILE", "--k", "2", "--json")),
        (("cluster", "FILE", "--clusters", "2", "--json"), ("cluster", "FILE", "--k=2", "--json")),
        (("pairs", "FILE", "--threshold", "0", "-k", "1", "--json"), ("pairs", "FILE", "--threshold", "0", "--top", "1", "--json")),
    ],
)
def test_an_old_spelling_still_works(
    munjang: Munjang, texts_file: Path, tiny_bert_folder: Path, new: tuple[str, ...], old: tuple[str, ...]
) -> None:
    pytest.importorskip("sklearn", reason="the extra topics is not installed")

    def call(arguments: tuple[str, ...]) -> Any:
        found = munjang(*(texts_file if each == "FILE" else each for each in arguments), "--model", tiny_bert_folder)
        assert found.code == 0, found.err
        return found.json

    assert call(new) == call(old)


def test_the_old_format_of_bulk_is_still_the_files_to_write(
    munjang: Munjang, texts_file: Path, tmp_path: Path, tiny_bert_folder: Path
) -> None:
    made = munjang("bulk", texts_file, "-o", tmp_path / "out", "--format", "npy", "--workers", "1", "-m", tiny_bert_folder)
    assert made.code == 0, made.err
    assert list((tmp_path / "out").rglob("*.npy"))
