"""A library says how it was encoded: every command that opens it computes and pools as it did then, or names both."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.cli.test_library import _tiny_default, news  # noqa: F401

from munjang.cli import options
from munjang.engine import modules, placed_graph
from munjang.errors import UsageError
from munjang.library.library import Library
from munjang.models.sentence_encoder import SentenceEncoder

Munjang = Callable[..., Any]


@pytest.fixture
def int8(news: Path, munjang: Munjang) -> Path:  # noqa: F811
    assert munjang("add", "news.db", news, "--compute", "int8").code == 0
    return news.with_name("news.db")


def forget_compute(path: Path) -> None:
    """Make a library what Munjang 0.1 wrote."""
    with sqlite3.connect(path) as connection:
        for column in ("compute", "pooling"):
            connection.execute(f"ALTER TABLE settings DROP COLUMN {column}")


COMMANDS = (
    ("search", "news.db", "rain"),
    ("add", "news.db", "news.csv"),
    ("pairs", "news.db", "--threshold", "0.0"),
    ("match", "news.db", "news.csv"),
    ("cluster", "news.db", "--method", "communities"),
    ("keywords", "news.db"),
    ("reencode", "news.db"),
    ("serve", "--library", "news.db", "--check"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
@pytest.mark.parametrize("old", [False, True], ids=["new file", "file of 0.1"])
def test_every_command_computes_as_the_library_was_encoded(int8: Path, munjang: Munjang, arguments: tuple[str, ...], old: bool) -> None:
    if old:
        forget_compute(int8)
    outcome = munjang(*arguments)
    assert outcome.code == 0, outcome.err
    found = munjang("info", int8, "--json").json
    with_int8 = SentenceEncoder.load(None, compute="int8")
    assert found["fingerprint"] == with_int8.fingerprint


def test_info_says_how_a_library_was_encoded(int8: Path, munjang: Munjang) -> None:
    assert (munjang("info", int8, "--json").json["compute"], munjang("info", int8, "--json").json["pooling"]) == ("int8", "mean")
    assert "int8, mean pooling" in munjang("info", int8).out
    forget_compute(int8)
    assert munjang("info", int8, "--json").json["compute"] is None
    assert munjang("info", int8).code == 0


@pytest.mark.parametrize("old", [False, True], ids=["new file", "file of 0.1"])
@pytest.mark.parametrize("arguments", COMMANDS[:5], ids=lambda each: each[0])
def test_another_compute_is_refused_with_both_and_the_remedy(int8: Path, munjang: Munjang, arguments: tuple[str, ...], old: bool) -> None:
    if old:
        forget_compute(int8)
    refused = munjang(*arguments, "--compute", "float32")
    assert refused.code == 2, refused.err
    assert "and compute int8, found compute float32" in refused.err
    assert "leave --compute out, or re-encode the library: munjang reencode news.db --compute float32" in refused.err
    assert munjang("reencode", "news.db", "--compute", "float32").code == 0
    assert munjang(*arguments).code == 0
    assert munjang("info", "news.db", "--json").json["compute"] == "float32"


def test_reencode_keeps_the_librarys_own_model_when_none_is_named(
    news: Path,  # noqa: F811
    munjang: Munjang,
    tiny_bert_folder: Path,
    tmp_path: Path,
) -> None:
    shutil.copytree(tiny_bert_folder, tmp_path / "mine")
    assert munjang("add", "news.db", news, "--model", "mine").code == 0
    assert munjang("reencode", "news.db").code == 0
    assert munjang("info", "news.db", "--json").json["model"] == "mine"


def test_a_model_that_is_not_found_by_its_name_is_asked_for(
    news: Path,  # noqa: F811
    munjang: Munjang,
    tiny_bert_folder: Path,
    tmp_path: Path,
) -> None:
    shutil.copytree(tiny_bert_folder, tmp_path / "models" / "mine")
    assert munjang("add", "news.db", news, "--model", "models/mine").code == 0
    refused = munjang("search", "news.db", "rain")
    assert refused.code == 2
    assert "was built with the model 'mine'" in refused.err
    assert "which is not found here by its name\n  give that model's folder with --model" in refused.err
    assert munjang("search", "news.db", "rain", "--model", "models/mine").code == 0


@pytest.mark.parametrize("old", [False, True], ids=["new file", "file of 0.1"])
def test_in_python_the_error_names_both_and_what_to_load(int8: Path, tiny_bert_folder: Path, old: bool) -> None:
    if old:
        forget_compute(int8)
    with pytest.raises(
        UsageError, match="and compute int8, found compute float32\n  load the model with compute='int8', or re-encode"
    ) as caught:
        Library.open(int8, SentenceEncoder.load(None))
    assert "--compute" not in str(caught.value)
    with Library.open(int8, SentenceEncoder.load(None, compute="int8")) as library:
        assert library.search("rain", 1)


def test_two_libraries_of_two_computes_are_refused_with_both(int8: Path, munjang: Munjang) -> None:
    assert munjang("add", "plain.db", "news.csv").code == 0
    for arguments in (("match", int8, "plain.db"), ("serve", "--check", "--library", "news.db", "--library", "plain.db")):
        refused = munjang(*arguments)
        assert refused.code == 2, refused.err
        assert "in float32" in refused.err
        assert "in int8" in refused.err
        assert "munjang reencode plain.db --model tiny --compute int8" in refused.err


def test_saved_topics_are_asked_with_the_compute_they_were_found_with(
    news: Path,  # noqa: F811
    munjang: Munjang,
    tmp_path: Path,
    tiny_bert_folder: Path,
) -> None:
    pytest.importorskip("sklearn", reason="the extra search is not installed")
    lines = tmp_path / "many.txt"
    lines.write_text("".join(f"the rain is in the river {n}\ncat and dog {n}\n" for n in range(20)), encoding="utf-8")
    fitted = munjang("topics", "fit", lines, "-o", tmp_path / "topics", "--compute", "int8")
    assert fitted.code == 0, fitted.err
    found = munjang("topics", "find", tmp_path / "topics", "rain")
    assert found.code == 0, found.err
    refused = munjang("topics", "find", tmp_path / "topics", "rain", "--compute", "float32")
    assert refused.code == 2
    assert "with tiny and compute int8, found compute float32\n  leave --compute out" in refused.err


def test_a_bulk_folder_in_int8_makes_a_library_in_int8(news: Path, munjang: Munjang, tmp_path: Path) -> None:  # noqa: F811
    pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    made = munjang("bulk", news, "-o", tmp_path / "vectors", "--keep-text", "--compute", "int8", "--workers", "1")
    assert made.code == 0, made.err
    added = munjang("add", "bulk.db", tmp_path / "vectors")
    assert added.code == 0, added.err
    assert munjang("info", "bulk.db", "--json").json["compute"] == "int8"


def plain_folder(tiny: Path, target: Path) -> Path:
    """Copy only what a plain Hugging Face folder has: no modules.json, so no pooling."""
    target.mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        if (tiny / name).is_file():
            shutil.copy(tiny / name, target / name)
    return target


def test_a_plain_folder_takes_its_pooling_from_the_command_line(
    munjang: Munjang, texts_file: Path, tiny_bert_folder: Path, tmp_path: Path
) -> None:
    import numpy as np

    plain = plain_folder(tiny_bert_folder, tmp_path / "plain")
    assumed = munjang("encode", texts_file, "-m", plain, "-o", tmp_path / "mean.npy")
    assert "mean pooling is assumed (choose with --pooling)" in assumed.err
    chosen = munjang("encode", texts_file, "-m", plain, "-o", tmp_path / "cls.npy", "--pooling", "cls")
    assert "assumed" not in chosen.err
    expected = SentenceEncoder.load(plain, pooling="cls").encode(texts_file.read_text(encoding="utf-8").splitlines())
    assert np.allclose(np.load(tmp_path / "cls.npy"), expected, atol=1e-6)
    assert not np.allclose(np.load(tmp_path / "mean.npy"), expected, atol=1e-3)


def test_a_library_remembers_the_pooling_of_a_plain_folder(
    news: Path,  # noqa: F811
    munjang: Munjang,
    tiny_bert_folder: Path,
    tmp_path: Path,
) -> None:
    plain_folder(tiny_bert_folder, tmp_path / "plain")
    assert munjang("add", "news.db", news, "-m", "plain", "--pooling", "cls").code == 0
    found = munjang("search", "news.db", "rain")
    assert found.code == 0, found.err
    assert "assumed" not in found.err
    refused = munjang("search", "news.db", "rain", "--pooling", "mean")
    assert refused.code == 2
    assert "and pooling cls, found pooling mean\n  leave --pooling out, or re-encode the library" in refused.err


def test_the_words_of_the_options_are_those_of_the_engine() -> None:
    assert get_args(options.Pooling) == get_args(modules.Pooling)
    assert get_args(options.Compute) == get_args(placed_graph.Compute)
