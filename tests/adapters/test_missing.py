"""Where an adapter's library is not installed, its import says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

ADAPTERS = [
    ("langchain", "langchain_core", "langchain-core"),
    ("llamaindex", "llama_index", "llama-index-core"),
    ("haystack_store", "haystack", "haystack-ai"),
    ("sklearn", "sklearn", "scikit-learn"),
    ("keybert", "keybert", "keybert"),
    ("bertopic", "bertopic", "bertopic"),
    ("llm", "llm", "llm"),
]
WITHOUT = """
import importlib, sys
sys.modules[sys.argv[2]] = None
try:
    importlib.import_module("munjang.adapters." + sys.argv[1])
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("name", "library", "package"), ADAPTERS, ids=[name for name, _, _ in ADAPTERS])
def test_the_error_names_the_package(name: str, library: str, package: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, name, library], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith("MissingPackage")
    assert f"pip install {package}\n" in done.stdout


def test_an_import_that_breaks_elsewhere_is_not_blamed_on_the_library() -> None:
    from munjang.adapters.loading import make_missing_error

    error = ModuleNotFoundError("No module named 'yaml'", name="yaml")
    assert make_missing_error("langchain_core", "langchain-core", error) is error


def test_mteb_is_asked_for_only_when_it_asks_who_the_model_is() -> None:
    code = "import sys, munjang.adapters.mteb; print([name for name in ('mteb', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
