"""`munjang serve` as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = "from munjang.cli.main import main; main()"


def start(folder: Path, tmp_path: Path, *more: str) -> tuple[subprocess.Popen[str], int]:
    arguments = [
        "serve",
        "--model",
        str(folder),
        "--port",
        "0",
        "--json",
        "--access-log",
        "none",
        "--data",
        str(tmp_path / "data"),
        "--read-only",
    ]
    process = subprocess.Popen([sys.executable, "-c", COMMAND, *arguments, *more], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    process.stdout.close()
    return process, int(line["address"].rpartition(":")[2])
