"""Clients that need packages of their own, unmodified: litellm, llama-index, haystack.

litellm wants older packages than we test with, and llama-index brings 100 MB along. So each client runs in an environment of its own, which
is made once in the folder that MUNJANG_CLIENTS names, or for this run. They stay slow tests for that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import TEXTS
from tests.serve import foreign_clients
from tests.serve.conftest import Running

from munjang import CrossEncoder, SentenceEncoder

PACKAGES = {
    "litellm": ["litellm==1.106.2"],
    "llama-index": [
        "llama-index-embeddings-openai-like==0.4.0",
        "llama-index-embeddings-text-embeddings-inference==0.6.0",
        "llama-index-postprocessor-tei-rerank==0.6.0",
    ],
    "haystack": ["haystack-ai==3.4.0", "huggingface-api-haystack==3.1.0"],
}
SHORT = [text for text in TEXTS if 0 < len(text) < 40]


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("MUNJANG_CLIENTS")
    return Path(kept) if kept else tmp_path_factory.mktemp("clients")


def python_of(client: str, folder: Path) -> str:
    """Return the Python of a client's environment, which is made where there is none; skip where its packages cannot be had."""
    found = folder / client / "bin/python"
    if not found.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / client)], check=True)
        done = subprocess.run([str(found), "-m", "pip", "install", "-q", *PACKAGES[client]], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"the packages of {client} cannot be installed: {done.stderr[-200:]}")
    return str(found)


def run_client(client: str, folder: Path, server: Running, model: str, reranker: str) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HF_HUB_OFFLINE")}
    done = subprocess.run(
        [python_of(client, folder), foreign_clients.__file__, client, server.url, model, reranker],
        input=json.dumps(SHORT),
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("client", PACKAGES)
def test_an_unmodified_client_gets_the_offline_vectors_and_order(
    client: str, environments: Path, server: Running, model: SentenceEncoder, reranker: CrossEncoder
) -> None:
    found = run_client(client, environments, server, model.name, reranker.name)
    expected = model.encode(SHORT, normalize=True)
    for dialect, vectors in found["vectors"].items():
        np.testing.assert_allclose(vectors, expected, atol=1e-5, err_msg=dialect)
    scores = reranker.predict_with_report([(foreign_clients.QUERY, text) for text in SHORT], score="sigmoid").scores
    for dialect, ranks in found["ranks"].items():
        assert [index for index, _, _ in ranks] == np.argsort(-scores, kind="stable").tolist(), dialect
        np.testing.assert_allclose([score for _, score, _ in ranks], np.sort(scores)[::-1], atol=1e-5, err_msg=dialect)
        assert [text for _, _, text in ranks] == [SHORT[index] for index, _, _ in ranks], dialect
