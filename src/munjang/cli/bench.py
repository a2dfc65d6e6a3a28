"""`munjang bench`: how fast things are on this machine, without any peer. `benchmarks/` compares with peers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from munjang.cli.options import JsonOption, ModelOption, examples, new_app
from munjang.cli.show import emit, note, print_table

app = new_app()


@app.callback(invoke_without_command=True, epilog=examples("munjang bench encode --seconds 3"))
def bench(context: typer.Context) -> None:
    """Measure speed on this machine."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog=examples("munjang bench encode", "munjang bench encode --model my-model --seconds 5 --json"))
def encode(
    model: ModelOption = None,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="How long to measure each route on each kind of text.")] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast texts become vectors: short sentences and passages, float32 and int8.

    Also measures the machine's float32 peak (matrix product) and the share of it that the float32 route reaches.
    """
    from munjang.cli.speed import measure, sample_texts
    from munjang.limits import usable_cores
    from munjang.models.sentence_encoder import SentenceEncoder

    models = {compute: SentenceEncoder.load(model, compute=compute) for compute in ("float32", "int8")}
    measured = measure(models, sample_texts(), seconds=seconds)
    name = models["float32"].name
    if as_json:
        emit({"model": name, "cores": usable_cores(), **asdict(measured)})
        return
    note(f"model {name}, {usable_cores()} cores, float32 peak {measured.sgemm_gflops:.0f} GFLOP/s")
    if measured.peak_disturbed:
        note("a route was faster than the peak, so the peak was disturbed: the machine is busy; measure again when it is idle")
    rows = [
        (
            speed.texts,
            speed.compute,
            f"{speed.texts_per_second:,.0f}",
            f"{speed.tokens_per_second:,.0f}",
            f"{speed.gflops:,.0f}",
            "" if speed.share_of_peak is None else f"{speed.share_of_peak:.0%}",
        )
        for speed in measured.routes
    ]
    numbers = ("texts/s", "tokens/s", "GFLOP/s", "of the peak")
    print_table(("texts", "compute", *numbers), rows, right=numbers)
