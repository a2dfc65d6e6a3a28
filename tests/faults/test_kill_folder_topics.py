"""kill -9 while the topics of a folder are found or assigned: what was there stays until something whole takes its place."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from munjang import load_topics
from munjang.bulk.run import encode_bulk

RUN = "import sys; from munjang.cli.main import run; print('go', flush=True); sys.exit(run(sys.argv[1:]))"


@pytest.mark.slow
def test_a_killed_run_leaves_the_old_topics_or_whole_new_ones(tmp_path: Path, tiny_bert_folder: Path) -> None:
    rows = (
        {"id": f"r{place}", "text": f"{word} {place % 300}"} for place, word in enumerate(["rain river", "cat dog", "train book"] * 400)
    )
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    encode_bulk([tmp_path / "news.jsonl"], tmp_path / "out", model=tiny_bert_folder, keep_text=True, workers=1, shard_rows=200)
    model, output = tmp_path / "model", tmp_path / "assigned.jsonl"

    def start(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RUN, "topics", *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run_to_end(*arguments: object) -> None:
        process = start(*arguments)
        process.communicate()
        assert process.returncode == 0

    fit = ("fit", tmp_path / "out", "-o", model, "--sample", "300", "--topics")
    run_to_end(*fit, "2")
    chance, seen = random.Random(0), set()
    began = time.monotonic()
    run_to_end(*fit, "3")
    whole = time.monotonic() - began
    for turn in range(6):
        process = start(*fit, str(2 + turn % 2)) if turn % 3 else start("assign", model, tmp_path / "out", "-o", output)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.2, 1.0) * whole)
        process.kill()
        process.communicate()
        found = load_topics(model)
        seen.add(len(found.topics))
        assert found.size == 1_200
        assert sum(topic.size for topic in found.topics) + found.outliers == 1_200
        assert not output.is_file() or len(output.read_text(encoding="utf-8").splitlines()) == 1_200
    assert seen <= {2, 3}
    run_to_end("assign", model, tmp_path / "out", "-o", output)
    assert len(output.read_text(encoding="utf-8").splitlines()) == 1_200
