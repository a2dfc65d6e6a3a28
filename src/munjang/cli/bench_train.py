"""`munjang bench train`: a few training steps of a model on sentences of our own → steps and texts per second on this machine.

What is trained is thrown away: the sentences teach nothing, and only the clock counts. The first steps allocate memory and are left out.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from munjang.cli.options import JsonOption, examples
from munjang.cli.show import emit, print_facts
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.train.progress import StepNews

WARM_UP = 2
"""Steps before the clock starts."""
SCRATCH = {"layers": 4, "width": 256, "heads": 4, "inner": 1024, "vocabulary": 2000}
"""The model that is trained when none is named."""


class StepClock:
    """Listens to a training and takes the time from the end of the warm-up to the last step."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.started = self.ended = 0.0

    def said(self, line: str) -> None:
        """Drop a remark."""

    def step(self, news: StepNews) -> None:
        """Take the time of a step."""
        self.ended = self._clock()
        if news.step == WARM_UP:
            self.started = self.ended


def train(
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The model to train on; without it, a small BERT with fresh weights.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=10_000, help="How many steps are timed.")] = 20,
    batch_size: Annotated[int, typer.Option(min=2, max=1_024, help="Pairs in a step; each is two texts.")] = 16,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast a model trains: steps, and texts, a second.

    Each step reads pairs of short sentences and tells each pair from the others of its batch. The trained model is thrown away.
    """
    from munjang.limits import usable_cores
    from munjang.train import missing_extra

    try:
        from munjang.train.finish import run
        from munjang.train.interrupt import Interrupted
        from munjang.train.recipe import make_recipe
    except ImportError as error:
        raise missing_extra(error) from error
    clock = StepClock()
    with tempfile.TemporaryDirectory(prefix="munjang-bench-") as name:
        folder = Path(name)
        try:
            run(make_recipe(_recipe(folder, model, steps, batch_size), folder=folder), progress=clock)
        except Interrupted:  # its checkpoint goes with the folder
            raise KeyboardInterrupt from None
    seconds = clock.ended - clock.started
    trained = model or f"a new BERT of {SCRATCH['layers']} layers, {SCRATCH['width']} wide"
    if as_json:
        facts = {"model": model, "scratch": SCRATCH if model is None else None, "steps": steps, "batch_size": batch_size}
        speed = {"seconds": seconds, "steps_per_second": steps / seconds, "texts_per_second": 2 * batch_size * steps / seconds}
        emit({**facts, "cores": usable_cores(), **speed})
        return
    print_facts(
        [
            ("model", trained),
            ("cores", str(usable_cores())),
            ("steps", f"{steps:,} of {count(batch_size, 'pair')} in {seconds:.1f} s, after {WARM_UP} that are not counted"),
            ("steps/s", f"{steps / seconds:.2f}"),
            ("texts/s", f"{2 * batch_size * steps / seconds:,.0f}"),
        ]
    )


def register(app: typer.Typer) -> None:
    """Add this command to `munjang bench`."""
    app.command(epilog=examples("munjang bench train", "munjang bench train --model my-model --steps 50 --batch-size 32 --json"))(train)


def _recipe(folder: Path, model: str | None, steps: int, batch_size: int) -> dict[str, Any]:
    """Write the pairs, and return the recipe that trains on them."""
    from munjang.models.all_pairs import numbered_samples

    pairs = (steps + WARM_UP) * batch_size
    texts = numbered_samples(2 * pairs)
    lines = (json.dumps({"a": a, "b": b}, ensure_ascii=False) + "\n" for a, b in zip(texts[::2], texts[1::2], strict=True))
    (folder / "pairs.jsonl").write_text("".join(lines), encoding="utf-8")
    source = {"path": str(folder / "pairs.jsonl"), "texts": ["a", "b"]}
    stage = {"objective": "in_batch", "steps": steps + WARM_UP, "batch_size": batch_size, "data": [source]}
    # a folder is meant as seen from here, not from the recipe
    base = None if model is None else str(Path(model).absolute()) if Path(model).is_dir() else model
    made = {"scratch": SCRATCH} if base is None else {"base": base}
    return {"output": str(folder / "model"), "model": made, "stage": [stage], "checkpoint_every": 10**6}
