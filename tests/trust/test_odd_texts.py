"""Odd texts through every door: Python, the command line and HTTP give finite vectors or a clear error, and all the same one."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.cli.conftest import munjang as munjang
from tests.serve.conftest import LIMITS, running
from tests.trust import odd_child
from tests.trust.odd_texts import ODD_TEXTS, SPECIAL

from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.settings import ServerSettings

SECONDS = 30
"""Of a processor, for one text through all of Python's doors."""


@pytest.fixture(scope="module")
def model(tiny_bert_folder):
    return SentenceEncoder.load(tiny_bert_folder)


@pytest.fixture(scope="module")
def by_python(tiny_bert_folder, tmp_path_factory):
    """What Python's doors say of each text, in a child with 2 GB."""
    command = [sys.executable, odd_child.__file__, str(tiny_bert_folder), str(tmp_path_factory.mktemp("odd"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


def is_clear(message: str) -> bool:
    return 10 < len(message) < 1_000 and all(sign.isprintable() or sign == "\n" for sign in message)


def test_python_answers_or_refuses_in_words(by_python, figures):
    bad = {}
    for name in ODD_TEXTS:
        report = {key: value for key, value in by_python[name].items() if key not in ("vector", "seconds")}
        good = all(what == "fine" or (what.startswith("refused") and is_clear(what)) for what in report.values())
        if not good or by_python[name]["seconds"] > SECONDS:
            bad[name] = report
    doors = "Python: encode, windows, add, search"
    figures("an odd text gives an answer or a clear error", cases=4 * len(ODD_TEXTS), bad=len(bad), notes=doors)
    assert not bad
    assert by_python["check"] == []


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_special_tokens_that_a_user_types_are_plain_text(tiny_folder, family):
    tokenizer = SentenceEncoder.load(tiny_folder(family)).tokenizer
    for text in (SPECIAL, SPECIAL.replace(" ", ""), *SPECIAL.split()):
        found = tokenizer.encode_with_offsets(text)
        assert list(found.special_mask) == [1] + [0] * (len(found.ids) - 2) + [1]
        framing = {found.ids[0], found.ids[-1]}
        assert not framing & set(found.ids[1:-1])


def test_the_command_line_gives_the_same(by_python, munjang, tiny_bert_folder, tmp_path, figures):
    bad = {}
    for name, text in ODD_TEXTS.items():
        (tmp_path / "in.jsonl").write_text(json.dumps({"text": text}) + "\n")
        (tmp_path / "out.npy").unlink(missing_ok=True)
        outcome = munjang("encode", tmp_path / "in.jsonl", "-o", tmp_path / "out.npy", "--model", tiny_bert_folder)
        expected = by_python[name].get("vector")
        if outcome.code == 0 and expected is not None:
            if np.abs(np.load(tmp_path / "out.npy", allow_pickle=False)[0] - expected).max() > 2e-6:
                bad[name] = "another vector"
        elif outcome.code != 3 or not is_clear(outcome.err):
            bad[name] = (outcome.code, outcome.err[:300])
    figures("an odd text gives an answer or a clear error", cases=len(ODD_TEXTS), bad=len(bad), notes="command line: encode")
    assert not bad


def test_http_gives_the_same(by_python, model, figures):
    bad = {}
    with running(ServerSettings(limits=LIMITS), model) as server:
        for name, text in ODD_TEXTS.items():
            sent = json.dumps({"input": [text], "model": "any"}).encode()
            answer = server.post("/v1/embeddings", sent)
            expected = by_python[name].get("vector")
            if answer.status == 200 and expected is not None:
                found, wanted = np.array(answer.json["data"][0]["embedding"]), np.array(expected)
                if np.abs(found - wanted / max(float(np.linalg.norm(wanted)), 1e-12)).max() > 1e-5:
                    bad[name] = "another vector"
            elif answer.status not in (400, 413, 422) or not is_clear(answer.body.decode()):
                bad[name] = (answer.status, answer.body[:300])
        assert server.get("/health").status == 200
    figures("an odd text gives an answer or a clear error", cases=len(ODD_TEXTS), bad=len(bad), notes="HTTP: /v1/embeddings")
    assert not bad
