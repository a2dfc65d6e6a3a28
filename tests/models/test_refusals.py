"""What a model cannot do is refused before anything is written."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import write_cross_encoder, write_json
from tests.static_model import write_static
from tests.terminal import Terminal

from munjang import CrossEncoder, SentenceEncoder
from munjang.engine.folder import read_folder
from munjang.errors import DamagedFile, InputError, UsageError
from munjang.models import export
from munjang.models.cross_vs_bi_timing import write_untrained_cross_encoder
from munjang.models.export import export_onnx
from munjang.models.progress import progress_bar
from munjang.models.samples import load_samples

PAIRS = [("the rain", "비가 많이 온다"), ("cat", "a dog was on the train"), ("snow", "winter")]


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    return SentenceEncoder.load(write_static(tmp_path_factory.mktemp("static")))


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross")
    write_cross_encoder(folder, 1)
    return folder


def test_a_static_model_has_no_graph_and_no_head(static: SentenceEncoder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a static model has no graph to export; it is a table of vectors"):
        export_onnx(static, tmp_path / "onnx")
    with pytest.raises(UsageError, match="has no layers that could read two texts together\n  name a cross-encoder to compare it with"):
        write_untrained_cross_encoder(static.folder, static.tokenizer, tmp_path / "cross")
    assert not list(tmp_path.iterdir())


def test_a_static_model_is_saved_with_its_configuration(tmp_path: Path) -> None:
    folder = write_static(tmp_path / "static")
    write_json(folder / "0_StaticEmbedding" / "config.json", {"model_type": "model2vec"})
    SentenceEncoder.load(folder).save(tmp_path / "saved")
    [kept] = (tmp_path / "saved").rglob("config.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == {"model_type": "model2vec"}
    np.testing.assert_array_equal(*(SentenceEncoder.load(place).encode(["the cat"]) for place in (folder, tmp_path / "saved")))


def test_a_graph_that_is_too_large_or_too_far_off_is_not_written(
    tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    with monkeypatch.context() as patch:
        patch.setattr(export, "PARITY", {"float32": -1.0})
        with pytest.raises(InputError, match=r"the exported graph differs by .*, more than -1; nothing was written"):
            export_onnx(model, tmp_path / "onnx")
    monkeypatch.setattr(export, "LARGEST_FILE", 1_000)
    with pytest.raises(UsageError, match=r"the graph has [\d,]+ bytes, the format allows 1,000"):
        export_onnx(model, tmp_path / "onnx")
    assert not list(tmp_path.iterdir())


def test_windows_and_a_prompt_outside_of_pooling_do_not_go_together(tiny_folder: Callable[..., Path]) -> None:
    model = SentenceEncoder.load(tiny_folder(include_prompt=False))
    with pytest.raises(
        UsageError, match="leaves its prompt out of pooling, which windows cannot do; choose long_text='truncate' or 'error'"
    ):
        model.encode(["the rain"], prompt="query: ", long_text="window")
    assert model.encode(["the rain"], long_text="window").shape == (1, 32)


def test_a_limit_without_room_for_two_texts_is_refused(cross: Path) -> None:
    with pytest.raises(UsageError, match="a limit of 4 tokens leaves no room for two texts"):
        CrossEncoder.load(cross, max_length=4)


def test_an_unknown_score_is_refused(cross: Path) -> None:
    with pytest.raises(UsageError, match="score='percent' is unknown; expected 'model', 'logits', 'sigmoid' or 'softmax'"):
        CrossEncoder.load(cross).predict(PAIRS, score="percent")  # type: ignore[arg-type]


@pytest.mark.parametrize("activation", ["Tanh", "ReLU", "Sigmoid", "Identity"])
def test_a_models_own_activation_gives_the_scores_of_sentence_transformers(cross: Path, tmp_path: Path, activation: str) -> None:
    authority = pytest.importorskip("sentence_transformers", reason="sentence-transformers is the authority")
    folder = shutil.copytree(cross, tmp_path / "cross")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    module = "linear" if activation == "Identity" else "activation"
    named = {"activation_fn": f"torch.nn.modules.{module}.{activation}"}
    write_json(folder / "config.json", config | {"sentence_transformers": named})
    expected = authority.CrossEncoder(str(folder), device="cpu").predict(PAIRS, show_progress_bar=False)
    np.testing.assert_allclose(CrossEncoder.load(folder).predict(PAIRS), expected, atol=1e-5)


def test_an_activation_that_gives_no_scores_is_refused(cross: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(cross, tmp_path / "cross")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    write_json(folder / "config.json", config | {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.GELU"}})
    with pytest.raises(UsageError, match="the activation 'gelu' is not one for scores"):
        CrossEncoder.load(folder).predict(PAIRS)


@pytest.mark.parametrize("lines", ["", "id\ttext\n", "id\tlanguage\tsubject\ttext\na\tko\n"], ids=["empty", "columns", "row"])
def test_damaged_samples_are_said_to_be_so(lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "samples.tsv").write_text(lines, encoding="utf-8")
    monkeypatch.setattr("munjang.models.samples.files", lambda _: tmp_path)
    with pytest.raises(DamagedFile, match=r"samples\.tsv: expected the columns id, language, subject, text in every line\n  reinstall"):
        load_samples()


@pytest.mark.parametrize(("is_one", "shown", "seen"), [(True, True, True), (False, True, False), (True, False, False)])
def test_a_bar_shows_on_a_terminal_only(is_one: bool, shown: bool, seen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal(is_one=is_one))
    with progress_bar("adding", 3, shown=shown) as advance:
        advance(1)
        advance(2)
    written = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert ("adding" in written and "3/3" in written) == seen
    assert bool(written) == seen


def test_a_file_gets_a_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with progress_bar("adding", 1_000, shown=True, clock=lambda: now) as advance:
        for _ in range(10):
            now += 12
            advance(100)
    assert capsys.readouterr().err.splitlines() == [
        "munjang: adding: 300 of 1,000, 8/s, 1:24 left",
        "munjang: adding: 600 of 1,000, 8/s, 0:48 left",
        "munjang: adding: 900 of 1,000, 8/s, 0:12 left",
    ]


def test_lines_of_a_work_without_a_known_end_have_no_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with progress_bar("encode", None, shown=True, clock=lambda: now) as advance:
        now = 40
        advance(4_000)
    assert capsys.readouterr().err == "munjang: encode: 4,000, 100/s\n"


@pytest.mark.parametrize("load", [SentenceEncoder.load, read_folder])
def test_a_pooling_that_there_is_not_is_named_with_those_that_are(load: Any, tiny_bert_folder: Path) -> None:
    with pytest.raises(UsageError, match="pooling='median', expected one of cls, max, mean, mean_sqrt_len, weightedmean, lasttoken"):
        load(tiny_bert_folder, pooling="median")
