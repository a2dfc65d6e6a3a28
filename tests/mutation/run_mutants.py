"""Mutants → which of them the tests notice. Each one runs in a forked child that holds it in memory only; the source tree is never changed.

Comes in: lines of `make_mutants`. Goes out: one JSON line per mutant with its outcome: "killed" (a test failed, or nothing could be
imported), "hung" (stopped by a bound on time or memory) or "survived". The parent imports what is heavy and not ours once, so a child
begins in milliseconds. Hypothesis draws the same few examples every time and does not shrink.

    python tests/mutation/run_mutants.py mutants.jsonl outcomes.jsonl [--only vectors/topk.py] [--sample 200]

Mutants that stand in the outcomes already are not run again: delete lines there to repeat them.
"""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HEAVY = (
    *("_pytest.assertion.rewrite", "_pytest.doctest", "hypothesis.extra.numpy", "numpy", "scipy.stats", "scipy.spatial.distance"),
    *("sklearn.metrics", "sklearn.cluster", "onnxruntime", "onnx", "tokenizers", "safetensors.numpy", "faiss", "torch"),
    *("sentence_transformers.util.quantization", "sentence_transformers.sentence_transformer.evaluation"),
)
EXAMPLES = 25
Mutant = dict[str, Any]


class _Loader(importlib.abc.Loader):
    """Makes one module out of a mutant's text."""

    def __init__(self, mutant: Mutant) -> None:
        self.path = ROOT / "src/munjang" / mutant["module"]
        self.name = "munjang." + mutant["module"].removesuffix(".py").replace("/", ".")
        self.text = mutant["source"]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, origin=str(self.path)) if name == self.name else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.path)
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)


class _FewExamples:
    """A pytest plugin: tests that ask hypothesis for many examples get few, drawn the same way every time."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        from hypothesis import settings

        for item in items:
            asked = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
            if asked is not None and asked.max_examples > EXAMPLES:
                item.obj._hypothesis_internal_use_settings = settings(asked, max_examples=EXAMPLES)


def _child(mutant: Mutant, tests: Sequence[str], bounds: dict[str, int]) -> int:
    """Run the tests with the mutant in place; 0 means that none of them noticed."""
    import doctest

    import pytest

    resource.setrlimit(resource.RLIMIT_DATA, (bounds["memory_gb"] << 30,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (bounds["cpu_seconds"],) * 2)
    loader = _Loader(mutant)
    sys.meta_path.insert(0, loader)
    try:
        module = importlib.import_module(loader.name)
    except Exception:
        return 1
    if doctest.testmod(module).failed:
        return 1
    present = [test for test in tests if (ROOT / test).exists()]
    return int(pytest.main(["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow", *present], plugins=[_FewExamples()]))


def run(mutant: Mutant, tests: Sequence[str], bounds: dict[str, int]) -> str:
    """Return the outcome of one mutant."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        code = 1
        try:
            code = _child(mutant, tests, bounds)
        finally:
            os._exit(1 if code else 0)
    end = time.monotonic() + bounds["wall_seconds"]
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "survived" if not status else "hung" if os.WIFSIGNALED(status) else "killed"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


def _prepare() -> None:
    """Import what children share, and make hypothesis quick and repeatable."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in HEAVY:
            importlib.import_module(name)
    gc.freeze()  # a collection in a child does not walk through all that
    from hypothesis import Phase, settings

    settings.register_profile(
        "mutation", max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
    )
    settings.load_profile("mutation")


def _check_baseline(module: str, targets: dict[str, Any]) -> None:
    """Stop if the tests do not pass on the source as it is: every mutant would look killed."""
    source = (ROOT / "src/munjang" / module).read_text(encoding="utf-8")
    if run({"module": module, "source": source}, targets["tests"][module], targets["bounds"]) != "survived":
        raise SystemExit(f"{module}: its tests fail without a mutation; mend them first")


def _why(mutant: Mutant, explained: Sequence[Mutant]) -> str | None:
    """Return why nothing can notice this mutant, if explained.toml says so."""
    line = mutant["change"].split("\n", 1)[0].removeprefix("-").strip()
    fitting = (entry for entry in explained if (entry["module"], entry["line"]) == (mutant["module"], line))
    return next((entry["why"] for entry in fitting if mutant["operator"] in entry.get("operators", [mutant["operator"]])), None)


def summary(outcomes: Path, made: Sequence[Mutant]) -> None:
    """Print a table: of each module how many mutants there are, and what became of those that were run."""
    explained = tomllib.loads((HERE / "explained.toml").read_text(encoding="utf-8"))["explained"]
    there = Counter(mutant["module"] for mutant in made)
    counts: dict[str, Counter[str]] = {module: Counter() for module in there}
    for line in outcomes.read_text(encoding="utf-8").splitlines():
        mutant = json.loads(line)
        outcome = "explained" if mutant["outcome"] == "survived" and _why(mutant, explained) else mutant["outcome"]
        counts[mutant["module"]][outcome] += 1
        if outcome == "survived":
            print(f"{mutant['module']}:{mutant['line']} {mutant['operator']}\n{mutant['change']}", file=sys.stderr)
    print("| module | mutants | run | killed | survived, explained | survived |\n|---|---|---|---|---|---|")
    for module, seen in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        mutants = sum(there.values()) if module == "all" else there[module]
        print(f"| `{module}` | {mutants} | {seen.total()} | {seen['killed'] + seen['hung']} | {seen['explained']} | {seen['survived']} |")


def _key(mutant: Mutant) -> tuple[str, str, int]:
    return mutant["module"], mutant["operator"], mutant["occurrence"]


def _sampled(mutants: Sequence[Mutant], only: Sequence[str], most: int | None) -> list[Mutant]:
    """Return the first `most` mutants of each chosen module; they were shuffled before."""
    by_module: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_module.setdefault(mutant["module"], []).append(mutant)
    return [mutant for module, made in by_module.items() if not only or module in only for mutant in made[:most]]


def main() -> None:
    """Run the mutants that have no outcome yet, then print a table of all outcomes and the survivors that nobody has explained."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mutants", type=Path)
    parser.add_argument("outcomes", type=Path)
    parser.add_argument("--only", action="append", default=[], help="a module, as in targets.toml; may be given again")
    parser.add_argument(
        "--sample", type=int, help="so many mutants of each module at most, drawn with the seed of targets.toml; 0 runs none"
    )
    chosen = parser.parse_args()
    targets = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    with chosen.mutants.open(encoding="utf-8") as file:
        mutants = [json.loads(line) for line in file]
    random.Random(targets["seed"]).shuffle(mutants)
    done = {_key(json.loads(line)) for line in chosen.outcomes.read_text("utf-8").splitlines()} if chosen.outcomes.exists() else set()
    pending = [mutant for mutant in _sampled(mutants, chosen.only, chosen.sample) if _key(mutant) not in done]
    if pending:
        _prepare()
    checked: set[str] = set()
    for mutant in pending:
        module = mutant["module"]
        if module not in checked:
            _check_baseline(module, targets)
            checked.add(module)
        outcome = run(mutant, targets["tests"][module], targets["bounds"])
        kept = {name: value for name, value in mutant.items() if name != "source"}
        with chosen.outcomes.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**kept, "outcome": outcome}, ensure_ascii=False) + "\n")
    summary(chosen.outcomes, mutants)


if __name__ == "__main__":
    main()
