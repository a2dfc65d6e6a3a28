from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from munjang import __version__
from munjang.cli import main as main_file
from munjang.cli.commands import COMMANDS, GROUPS, help_page
from munjang.cli.group import app
from munjang.errors import Busy, DamagedFile, InputError, MunjangError, NoSpace, UsageError

PROGRAM = [sys.executable, "-c", "from munjang.cli.main import main; main()"]


def call(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)


def test_help_imports_nothing_heavy() -> None:
    heavy = "[name for name in ('numpy', 'onnxruntime', 'rich', 'typer') if name in sys.modules]"
    code = f"import sys; from munjang.cli.main import run; run(['--help']); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version_and_bare_call(munjang: Callable[..., Any]) -> None:
    assert munjang("--version").out == f"munjang {__version__}\n"
    bare = munjang()
    assert bare.code == 0
    assert bare.out == munjang("--help").out
    assert all(f"\n  {name} " in bare.out for name in ("encode", "similar", "inspect", "export", "models", "bench", "demo"))


def test_help_lists_every_command_once_in_its_group_within_80_columns(munjang: Callable[..., Any]) -> None:
    lines = munjang("--help").out.splitlines()
    assert [line.removesuffix(":") for line in lines if line.endswith(":")] == ["Options", *GROUPS]
    assert list(GROUPS) == ["Prepare", "Search", "Analyse", "Train", "Evaluate", "Run", "Look"]
    assert [line.split()[0] for line in lines[lines.index("Prepare:") :] if line.startswith("  ")] == [entry.name for entry in COMMANDS]
    assert max(map(len, lines)) <= 80


def test_a_command_that_asks_the_parser_for_help_prints_the_same_page() -> None:
    assert typer.main.get_command(app).get_help(typer.Context(typer.main.get_command(app))) == help_page()


def test_an_unknown_command_names_the_nearest(munjang: Callable[..., Any]) -> None:
    outcome = munjang("encod")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "munjang: there is no command 'encod'\n  did you mean 'encode'?\n"
    assert "commands: encode, add" in munjang("zzz").err
    assert "show" in munjang("models", "shw").err


@pytest.mark.parametrize(
    "arguments", [("encode",), ("encode", "a.txt", "--nothing"), ("similar", "a"), ("demo", "-k", "0"), ("demo", "-k", "x")]
)
def test_a_wrong_call_is_exit_2_and_one_message(munjang: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    outcome = munjang(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("munjang: ")
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (InputError("x"), 3),
        (DamagedFile("x"), 4),
        (Busy("x"), 5),
        (NoSpace("x"), 6),
        (OSError(28, "No space left on device"), 6),
        (PermissionError(13, "Permission denied", "a.txt"), 3),
        (KeyboardInterrupt(), 130),
        (ValueError("x"), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_error_has_its_exit_code(
    munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("munjang.models.samples.load_samples", fail)
    monkeypatch.setattr("munjang.models.sentence_encoder.SentenceEncoder.load", lambda *args, **options: fail())
    outcome = munjang("demo")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith("munjang: ")
    assert "Traceback" not in outcome.err
    assert isinstance(error, MunjangError) <= ("x" in outcome.err)


def test_a_bug_shows_its_traceback_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise ValueError("x")

    monkeypatch.setenv(main_file.DEBUG, "1")
    monkeypatch.setattr(main_file, "_invoke", fail)
    with pytest.raises(ValueError, match="x"):
        main_file.run([])


def test_a_warning_is_one_line_on_standard_error(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(arguments: object) -> int:
        warnings.warn("cut\nshort", UserWarning, stacklevel=1)
        warnings.warn("for developers", DeprecationWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(main_file, "_invoke", warn)
    outcome = munjang("demo")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "munjang: cut short\n")


def test_a_broken_pipe_is_quiet(tiny_bert_folder: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the rain\n" * 5_000)
    words = ["encode", str(texts), "--json", "--model", str(tiny_bert_folder)]
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(timeout=60), process.stderr.read()) == (0, b"")


def test_an_interrupt_is_exit_130() -> None:
    code = """
import os, signal, time
from munjang.cli.main import main
from munjang.models.sentence_encoder import SentenceEncoder

def load(*names, **options):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit "ignore"
SentenceEncoder.load = load
main(["demo"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "munjang: interrupted\n")


def test_a_terminal_without_hangul_gets_escapes(tiny_bert_folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = call("inspect", "비가 온다", "--json", "--model", tiny_bert_folder, env=environment)
    assert done.returncode == 0, done.stderr
    assert "\\ube44" in done.stdout
