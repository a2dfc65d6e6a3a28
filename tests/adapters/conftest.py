"""For tests of adapters: the real libraries, tiny models, and small texts of ours."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.conftest import write_cross_encoder

from munjang import CrossEncoder, SentenceEncoder

SHORT = [
    "the rain is in the river",
    "비가 많이 온다",
    "a dog was on the train",
    "고양이가 창가에서 졸고 있다",
    "눈이 올까요?",
    "the book of winter",
]
PROMPTS = '{"prompts": {"query": "winter ", "document": "the book "}}'


def library(name: str) -> Any:
    """Import a library that an adapter is for, without its own warnings; skip the test where it is not installed."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name.partition('.')[0]}, which the adapter is for, is not installed", allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def adapter(name: str, needs: str) -> ModuleType:
    """Import one of our adapters after the library that it needs."""
    library(needs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"munjang.adapters.{name}")


@pytest.fixture(scope="session")
def model(tiny_bert_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


@pytest.fixture(scope="session")
def prompted(tiny_folder: Any) -> SentenceEncoder:
    """A model that has prompts for queries and documents."""
    return SentenceEncoder.load(tiny_folder("bert", settings=PROMPTS))


@pytest.fixture(scope="session")
def make_reranker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def make(labels: int) -> Path:
        folder = tmp_path_factory.mktemp(f"cross-{labels}")
        write_cross_encoder(folder, labels)
        return folder

    return make


@pytest.fixture(scope="session")
def reranker(make_reranker: Any) -> CrossEncoder:
    return CrossEncoder.load(make_reranker(1))
