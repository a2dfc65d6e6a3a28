"""`device="openvino"` for real, in an environment of its own, since the package is large and no other test needs it.

The environment is made from the package index that pip is set up for; where there is none, the test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import write_cross_encoder

from munjang.engine.devices import multiplies_bfloat16
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.sentence_encoder import SentenceEncoder

SOURCE = Path(__file__).parents[2] / "src"
PINNED = ("numpy", "onnx", "onnxruntime", "tokenizers", "safetensors", "typer", "rich", "filelock", "snowballstemmer")
TEXTS = ["It rains a lot in winter.", "겨울에는 비가 많이 온다", "bread", "", "a long walk along the river in the snow " * 12]
BOUND = 1e-3
"""What the issue asks for; 2e-6 was measured."""

PROGRAM = """
import json, sys
from munjang import CrossEncoder, SentenceEncoder

given = json.loads(sys.stdin.read())
model = SentenceEncoder.load(given["model"], device="openvino")
scorer = CrossEncoder.load(given["cross"], device="openvino")
print(json.dumps({
    "devices": [model.device, scorer.device, SentenceEncoder.load(given["model"]).device],
    "compute": model.compute,
    "fingerprint": model.fingerprint,
    "vectors": model.encode(given["texts"]).tolist(),
    "alone": [model.encode(text).tolist() for text in given["texts"]],
    "scores": scorer.predict([(given["texts"][0], text) for text in given["texts"]], score="logits").tolist(),
}))
"""

BFLOAT16 = """
import json, sys
from munjang import SentenceEncoder

given = json.loads(sys.stdin.read())
model = SentenceEncoder.load(given["model"], compute="bfloat16")
print(json.dumps({
    "device": model.device,
    "fingerprint": model.fingerprint,
    "vectors": model.encode(given["texts"]).tolist(),
    "alone": [model.encode(text).tolist() for text in given["texts"]],
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("openvino") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pins = [f"{name}=={metadata.version(name)}" for name in PINNED]
    command = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "openvino", *pins]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"openvino cannot be installed here: {made.stderr.splitlines()[-1:]}")
    return place / "bin/python"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
def test_openvino_gives_the_vectors_and_scores_of_the_cpu(python, tmp_path):
    write_cross_encoder(tmp_path / "cross", labels=1)
    model, scorer = SentenceEncoder.load(device="cpu"), CrossEncoder.load(tmp_path / "cross", device="cpu")
    order = {"model": str(model.folder.path), "cross": str(scorer.folder.path), "texts": TEXTS}
    run = subprocess.run(
        [str(python), "-c", PROGRAM],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer["devices"] == ["openvino", "openvino", "cpu"]
    assert (answer["compute"], answer["fingerprint"]) == ("float32", model.fingerprint)
    vectors = np.array(answer["vectors"], np.float32)
    assert float(np.abs(vectors - model.encode(TEXTS)).max()) <= BOUND
    assert float(np.abs(vectors - np.array(answer["alone"], np.float32)).max()) <= 2e-6
    scores = scorer.predict([(TEXTS[0], text) for text in TEXTS], score="logits")
    assert float(np.abs(np.array(answer["scores"], np.float32) - scores).max()) <= BOUND


@pytest.mark.slow
@pytest.mark.skipif(not multiplies_bfloat16(), reason="this processor does not multiply in bfloat16")
def test_bfloat16_stays_near_float32_in_any_batch(python):
    model = SentenceEncoder.load(device="cpu")
    texts = [*TEXTS[:3], TEXTS[4]]  # the empty text aside, which has special tokens alone
    run = subprocess.run(
        [str(python), "-c", BFLOAT16],
        input=json.dumps({"model": str(model.folder.path), "texts": texts}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer["device"] == "openvino"
    assert answer["fingerprint"] == model.fingerprint_as("bfloat16") != model.fingerprint
    vectors, alone = (np.array(answer[name], np.float32) for name in ("vectors", "alone"))
    assert (vectors * model.encode(texts)).sum(axis=1).min() >= 0.9998
    assert float(np.abs(vectors - alone).max()) <= 2e-3
