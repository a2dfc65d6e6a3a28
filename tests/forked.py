"""Code in a process of its own that need not import torch first: one process has imported it, has done nothing else, and forks.

Starting Python with torch, transformers and accelerate takes seconds of a processor, a fork takes milliseconds. A child is as good as a
new process: it has no threads and nothing of other tests; its signals, its output and its exit code are its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 300
"""After which a child is ended: it hangs."""


@dataclass(frozen=True)
class Child:
    """A process that was started."""

    pid: int
    folder: tempfile.TemporaryDirectory[str]


class Forks:
    """The process that forks, as seen from the tests."""

    def __init__(self) -> None:
        one_core = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        command = [sys.executable, "-W", "ignore", __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | one_core)

    def start(self, code: str, *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Child:
        """Start code with these arguments, in a folder and with more variables in its environment."""
        output = tempfile.TemporaryDirectory()
        order = {"code": code, "arguments": arguments, "folder": str(folder or Path.cwd()), "environment": dict(environment or {})}
        return Child(int(self._ask({"start": order | {"output": output.name}})), output)

    def wait(self, child: Child) -> subprocess.CompletedProcess[str]:
        """Wait for the end of a child; return its exit code (minus the signal's number where one ended it) and what it said."""
        code = int(self._ask({"wait": child.pid}))
        out, err = (Path(child.folder.name, name).read_text(encoding="utf-8") for name in ("out", "err"))
        child.folder.cleanup()
        return subprocess.CompletedProcess([], code, out, err)

    def run(self, code: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.wait(self.start(code, *arguments, folder=folder))

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def open_forks() -> Iterator[Forks]:
    forks = Forks()
    try:
        yield forks
    finally:
        forks.close()


def answer_orders() -> None:
    """Import what trainings import, then fork a child for each order until there are no more."""
    import accelerate  # noqa: F401
    import torch.distributed  # noqa: F401
    from transformers import AutoModel, BertModel, PreTrainedTokenizerFast  # noqa: F401

    import munjang.cli.main
    import munjang.cli.train
    import munjang.train.save_and_report
    import munjang.train.stage_run  # noqa: F401

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                become_child(order["start"])
            told = pid
        else:
            told = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        answers.write(f"{told}\n")
        answers.flush()


def become_child(order: dict[str, Any]) -> None:
    """Run the order's code as `python -c` would, and end."""
    signal.alarm(SECONDS)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(Path(order["output"], name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["-c", *order["arguments"]]
    status = 0
    try:
        exec(compile(order["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    answer_orders()
