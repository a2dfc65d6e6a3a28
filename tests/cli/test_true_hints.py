"""No message advises an option that the command it is printed by does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.commands import COMMANDS, load_command
from munjang.cli.error_hints import drop_false_hints
from munjang.cli.main import _is_option, _options_of

SOURCE = Path(import_module("munjang").__file__ or "").parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
CALL = re.compile(r"munjang ([a-z]+)((?: [a-z]+)?)([^`\n]*)")


def calls() -> Iterator[tuple[str, ...]]:
    for entry in COMMANDS:
        inner = getattr(load_command(entry), "commands", {})
        yield from ((entry.name, name) for name in inner) if inner else ((entry.name,),)


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield every text in a file but docstrings and CSS; what an f-string fills in is an X."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inside | docs:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


TEXTS = [
    (path, text)
    for path in sorted(SOURCE.rglob("*.py"))
    if path.parent.name != "report"
    for text in texts_of(ast.parse(path.read_text(encoding="utf-8")))
    if OPTION.search(text)
]
ADVICE = sorted({text for path, text in TEXTS if path.parent.name != "cli" and any(map(_is_option, OPTION.findall(text)))})


def test_there_is_advice_to_look_at() -> None:
    assert len(ADVICE) > 20


@pytest.mark.parametrize("call", [*calls()], ids=" ".join)
def test_no_command_advises_an_option_that_it_lacks(call: tuple[str, ...]) -> None:
    own = _options_of(call)
    for text in ADVICE:
        for message in (f"a.csv: is wrong\n  {text.strip()}", text):
            hints = drop_false_hints(message, own, _is_option).split("\n")[1:]
            for line in hints:
                before = re.split(r"\b(?:munjang [a-z]|pip |dask )", line)[0]
                wrong = [option for option in OPTION.findall(before) if option not in own and _is_option(option)]
                assert not wrong, (call, line)


def test_every_call_of_a_command_in_a_message_is_one_that_works() -> None:
    names = {entry.name for entry in COMMANDS}
    for path, text in TEXTS:
        for command, inner, rest in CALL.findall(text):
            if command not in names:
                continue
            known = _options_of([command, *inner.split()])
            wrong = [option for option in OPTION.findall(re.split(r" \(|, |; ", rest)[0]) if option not in known]
            assert not wrong, (path.name, text)


def test_a_commands_own_messages_name_its_own_options() -> None:
    for entry in COMMANDS:
        own = {"--version", "-h"}.union(*(_options_of([each.name]) for each in COMMANDS if each.module == entry.module))
        path = SOURCE.joinpath(*entry.module.split(".")[1:]).with_suffix(".py")
        for text in (text for found, text in TEXTS if found == path and not re.search("munjang|pip |accelerate ", text)):
            wrong = [option for option in OPTION.findall(text) if option not in own]
            assert not wrong, (entry.name, text)


def test_advice_for_another_command_is_left_out_of_what_is_printed(
    munjang: Callable[..., Any], tmp_path: Path, tiny_bert_folder: Path
) -> None:
    (tmp_path / "pairs.csv").write_text("x,y,z\nthe cat,a dog,1\nrain,snow,0\n", encoding="utf-8")
    (tmp_path / "texts.txt").write_text("rain\nsnow\n", encoding="utf-8")
    called = ("match", tmp_path / "texts.txt", tmp_path / "texts.txt", "--model", tiny_bert_folder)
    refused = munjang(*called, "--calibrate", tmp_path / "pairs.csv")
    assert refused.code != 0
    assert "--column" not in refused.err
    told = munjang("evaluate", "pairs", tmp_path / "pairs.csv", "--model", tiny_bert_folder)
    assert "--column" in told.err


def test_the_advice_to_choose_a_pooling_is_only_given_where_it_can_be_taken(
    munjang: Callable[..., Any], tmp_path: Path, tiny_bert_folder: Path
) -> None:
    from tests.cli.test_follow_library import plain_folder

    plain = plain_folder(tiny_bert_folder, tmp_path / "plain")
    outcome = munjang("models", "check", plain)
    assert "mean pooling is assumed" in outcome.err
    assert "--pooling" not in outcome.err
    assert "(choose with --pooling)" in munjang("similar", "rain", "snow", "-m", plain).err
