"""`munjang bench`: how fast things are on this machine, without any peer. `benchmarks/` compares with peers."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.options import ComputeOption, JsonOption, ModelOption, examples, new_app
from munjang.cli.show import emit, note, print_table
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.engine.transformer import Compute
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.sentence_encoder import SentenceEncoder

app = new_app()


@app.callback(
    invoke_without_command=True, epilog=examples("munjang bench encode --seconds 3", "munjang bench search", "munjang bench pairs")
)
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
    from munjang.cli.watched import load_model
    from munjang.limits import usable_cores

    models = {compute: load_model(model, compute=compute) for compute in ("float32", "int8")}
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


@app.command(epilog=examples("munjang bench pairs", "munjang bench pairs -n 100000 --cross my-reranker --json"))
def pairs(
    model: ModelOption = None,
    cross: Annotated[str | None, typer.Option(help="A cross-encoder; without it, the model's encoder with an untrained head.")] = None,
    n: Annotated[int, typer.Option("-n", min=2, max=10_000_000, help="How many sentences.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="How long to score sampled pairs.")] = 5.0,
    compute: ComputeOption = "float32",
    as_json: JsonOption = False,
) -> None:
    """Measure what comparing n sentences with each other takes: a cross-encoder over all pairs, or vectors and the nearest of each.

    The vectors' way is measured whole, the cross-encoder's on a sample of pairs and extrapolated.
    """
    from munjang.cli.watched import load_model
    from munjang.limits import usable_cores
    from munjang.models.all_pairs import numbered_samples, time_all_pairs
    from munjang.models.cross_encoder import CrossEncoder

    encoder = load_model(model, compute=compute)
    scorer = _untrained(encoder, compute) if cross is None else CrossEncoder.load(cross, compute=compute)
    measured = time_all_pairs(encoder, scorer, numbered_samples(n), seconds=seconds)
    name = f"{encoder.name} with an untrained head" if cross is None else scorer.name
    if as_json:
        names = {"model": encoder.name, "cross_encoder": name, "untrained_head": cross is None}
        emit({**names, "compute": compute, "cores": usable_cores(), "extrapolated": ["cross_seconds", "ratio"], **measured.to_json()})
        return
    note(f"{n:,} English sentences made of the sample collection, {usable_cores()} cores, {compute}")
    if cross is None:
        note("the head is random: its scores mean nothing, its time is that of a trained one")
    sampled = f"extrapolated from {count(measured.sampled_pairs, 'pair')} in {_duration(measured.sampled_seconds)}"
    parts = f"measured: encoding {_duration(measured.encode_seconds)}, search {_duration(measured.search_seconds)}"
    rows = [
        ("cross-encoder", name, count(measured.pairs, "pair"), _duration(measured.cross_seconds), sampled),
        ("bi-encoder", encoder.name, f"{count(n, 'sentence')}, the nearest of each", _duration(measured.bi_seconds), parts),
    ]
    print_table(("way", "model", "work", "time", "how"), rows, right=("time",))
    print(f"the cross-encoder takes {measured.ratio:,.0f} times as long")


def _untrained(encoder: SentenceEncoder, compute: Compute) -> CrossEncoder:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.untrained_head import write_untrained_cross_encoder

    with tempfile.TemporaryDirectory(prefix="munjang-bench-") as folder:
        write_untrained_cross_encoder(encoder.folder, encoder.tokenizer, Path(folder))
        return CrossEncoder.load(folder, compute=compute)


def _duration(seconds: float) -> str:
    """Write a duration in the unit that a person would use.

    >>> _duration(4.21), _duration(150), _duration(234_000)
    ('4.2 s', '2.5 min', '65.0 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def _with_the_rest() -> None:
    """Register the sub-commands of other files."""
    from munjang.cli import bench_search, bench_train

    bench_search.register(app)
    bench_train.register(app)


_with_the_rest()
