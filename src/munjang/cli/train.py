"""`munjang train`: a recipe → a trained model folder with its card and report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from munjang.cli.options import JsonOption, LanguageOption, PoolingOption, examples, new_app, report_language
from munjang.cli.show import emit, print_facts
from munjang.errors import UsageError, quote
from munjang.train.progress import Live
from munjang.types import Device

app = new_app()


@app.command(
    epilog=examples(
        "munjang train recipe.toml",
        "munjang train recipe.toml --set seed=7 --set stage.0.epochs=2 -o models/second",
        "munjang train recipe.toml --resume",
        "accelerate launch --multi_gpu --num_processes 2 -m munjang.cli.main train recipe.toml",
    )
)
def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="The recipe (TOML).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The output folder; overrides the recipe.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model to start from; overrides the recipe.")] = None,
    pooling: PoolingOption = None,
    device: Annotated[Device | None, typer.Option("--device", help="Where to train; overrides the recipe.")] = None,
    change: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one value of the recipe.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted training.")] = False,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a model from a recipe.

    Ctrl-C writes a checkpoint, and --resume continues from the last one. The finished folder loads in Munjang and in sentence-transformers;
    it also contains a model card (README.md) and a report.
    """
    from munjang.train import train as run
    from munjang.train.recipe import read_recipe

    overrides = dict(_parse_change(item) for item in change or [])
    if output is not None:
        overrides["output"] = str(output.absolute())
    if model is not None:
        # a folder is meant as seen from here, not from the recipe; a recipe's own sizes give way
        overrides["model.base"] = str(Path(model).absolute()) if Path(model).is_dir() else model
        overrides["model.scratch"] = None
    if pooling is not None:
        overrides["model.pooling"] = pooling
    if device is not None:
        overrides["device"] = device
    made = read_recipe(recipe, overrides=overrides)
    with Live() as live:
        result = run(made, resume=resume, progress=live, language=report_language(language))
    if not result.is_first:
        return
    if as_json:
        emit(result.to_json())
        return
    facts = [("model", str(result.output)), ("steps", f"{len(result.log.steps):,}")]
    facts += [(name, f"{value:.4f}") for name, value in result.scores.items()]
    facts += [(f"{name} on {test.test}", f"{value:.4f}") for test in result.tests for name, value in test.scores.items()]
    facts += [("report", str(result.output / "report.html"))] if (result.output / "report.html").is_file() else []
    facts += [("warning", result.warning)] if result.warning else []
    print_facts(facts)


def _parse_change(item: str) -> tuple[str, Any]:
    """Read KEY=VALUE, the value as TOML where it is TOML and as text where it is not."""
    import tomllib

    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {quote(item)}: expected KEY=VALUE, such as --set stage.0.epochs=2")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value
