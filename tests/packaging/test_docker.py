"""The image and the compose file, as far as they can be tried without Docker: what they call, and what they promise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import postgres_url

from munjang.cli.commands import find, load_command

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DOCUMENTED = re.compile(r"run --rm tool (.*)$", re.MULTILINE)


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    return dict(yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8")))


def in_dockerfile(keyword: str) -> list[str]:
    return re.findall(rf"^{keyword} (.*)$", DOCKERFILE, re.MULTILINE)


def check_call(words: list[str]) -> None:
    """Let the parser read a call without running it."""
    entry = find(words[0])
    assert entry is not None, words
    command = load_command(entry)
    context = command.make_context(words[0], words[1:])
    context.close()


def test_every_munjang_call_is_understood() -> None:
    assert json.loads(in_dockerfile("ENTRYPOINT")[0]) == ["munjang"]
    documented = [line.split("`")[0].split() for line in DOCUMENTED.findall((ROOT / "docs/docker.md").read_text(encoding="utf-8"))]
    calls = [json.loads(in_dockerfile("CMD")[0]), compose()["services"]["server"]["command"], *documented]
    assert len(calls) >= 4
    for words in calls:
        check_call(words)


def test_the_image_runs_without_rights_and_is_watched() -> None:
    assert in_dockerfile("USER") == ["munjang"]
    assert "useradd --uid 10001" in DOCKERFILE
    probe = json.loads(re.search(r"HEALTHCHECK.*?CMD (\[.*?\])$", DOCKERFILE, re.DOTALL | re.MULTILINE)[1])  # type: ignore[index]
    compile(probe[-1], "probe", "exec")
    assert "/health" in probe[-1]
    copied = {word for line in in_dockerfile("COPY") if not line.startswith("--from") for word in line.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    assert copied == kept


def pinned(name: str) -> dict[str, str]:
    """Return a locked list as pip reads it: each package with its version and hashes, by name."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8").strip())
    return {re.match(r"[\w.-]+", block)[0].lower().replace("_", "-"): block for block in blocks}  # type: ignore[index]


def test_the_image_installs_the_tested_packages_by_their_hashes() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ("serve", "korean", "search", "parquet", "topics", "pgvector")
    needed = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    names = {re.match(r"[\w.-]+", each)[0].lower() for each in needed} - {"munjang"}  # type: ignore[index]
    assert names <= set(pinned("server"))
    assert pinned("server").items() <= pinned("dev").items()
    assert "pip install --no-deps --require-hashes -r server.txt" in DOCKERFILE
    assert all("--no-deps" in line for line in re.findall(r"pip install .*", DOCKERFILE))


def test_every_foreign_image_is_pinned_by_its_digest() -> None:
    digest = re.compile(r"^\S+:[\w.-]+@sha256:[0-9a-f]{64}$")
    assert {*in_dockerfile("FROM")} == {"${PYTHON} AS build", "${PYTHON}"}
    [python] = in_dockerfile("ARG")
    assert digest.match(python.removeprefix("PYTHON="))
    images = {service["image"] for service in compose()["services"].values()}
    assert all(digest.match(image) for image in images - {"munjang"})


def test_the_services_are_safe_by_default() -> None:
    services = compose()["services"]
    server = services["server"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert "ports" not in services["postgres"]
    assert server["read_only"]
    assert server["cap_drop"] == ["ALL"]
    assert server["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "healthcheck" in services["postgres"]
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            assert "PASSWORD" not in name or value.startswith("${MUNJANG_DB_PASSWORD:?"), "a password stands in the file"


@pytest.mark.slow
def test_what_the_containers_do_works_on_a_real_postgres(tiny_bert_folder: Path) -> None:
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    url = f"{postgres_url()}#docker"

    def call(*words: str) -> str:
        code = "from munjang.cli.main import main; main()"
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("add", url, str(ROOT / "examples/data/books.csv"), "--model", str(tiny_bert_folder))
    assert json.loads(call("info", url, "--json"))["documents"] == 48
    served = json.loads(call("serve", "--library", url, "--model", str(tiny_bert_folder), "--check"))
    assert len(served["libraries"]) == 1
