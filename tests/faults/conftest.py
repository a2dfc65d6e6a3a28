"""The worker as a module, and as a process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tests.postgres import postgres_url

WORKER = Path(__file__).with_name("library_worker.py")


@pytest.fixture(scope="session")
def worker():
    spec = importlib.util.spec_from_file_location("library_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def start_worker():
    """Start the worker with these arguments; whatever still runs at the end is killed."""
    started: list[subprocess.Popen] = []

    def start(*arguments) -> subprocess.Popen:
        command = [sys.executable, str(WORKER), *map(str, arguments)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def postgres() -> str:
    """The address of a real PostgreSQL."""
    return postgres_url()
