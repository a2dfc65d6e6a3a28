"""The options that commands share, so that one word means one thing everywhere."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import typer
from typer.core import TyperCommand

from munjang.wording import Language

Function = TypeVar("Function", bound=Callable[..., Any])


def _model_names(incomplete: str) -> list[str]:
    """Return the models whose name begins so, for a shell that completes."""
    from munjang.models.registry import list_models

    return [found.name for found in list_models() if found.name.startswith(incomplete)]


ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A model's name or folder; without it, the default model.", autocompletion=_model_names),
]
ModelArgument: TypeAlias = Annotated[str, typer.Argument(metavar="MODEL", help="A model's name or folder.", autocompletion=_model_names)]
Pooling: TypeAlias = Literal["cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken"]
PoolingOption: TypeAlias = Annotated[
    Pooling | None, typer.Option("--pooling", help="How token vectors become one; for a model folder that does not say it.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
OutputOption: TypeAlias = Annotated[Path | None, typer.Option("--output", "-o", help="Write the result to this file.")]
Compute: TypeAlias = Literal["float32", "int8"]
ComputeOption: TypeAlias = Annotated[Compute, typer.Option("--compute", help="How the model computes; int8 is faster for a small loss.")]
LibraryComputeOption: TypeAlias = Annotated[
    Compute | None,
    typer.Option(
        "--compute",
        help="How the model computes; int8 is faster for a small loss. By default as the library was encoded, else float32.",
    ),
]
LanguageOption: TypeAlias = Annotated[
    Language | None, typer.Option("--language", help="The report's language; without it Korean under a Korean locale, else English.")
]
TextColumnOption: TypeAlias = Annotated[str | None, typer.Option("--text-column", help="The column that holds the text.")]
TextsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="FILE", help='txt, csv, tsv, jsonl, json or parquet, also gzipped; "-" is standard input; or a library.'),
]
FormatOption: TypeAlias = Annotated[
    Literal["txt", "csv", "tsv", "jsonl", "json", "parquet"] | None,
    typer.Option("--format", help="The input's format, when its name does not say it."),
]
_KOREAN = re.compile("ko(rean)?(?![a-z])", re.IGNORECASE)  # ko, ko_KR.UTF-8, Korean_Korea.949; not kok_IN, which is Konkani
UTF8 = "utf-8-sig"
"""UTF-8, with or without a byte order mark."""
EncodingOption: TypeAlias = Annotated[str, typer.Option("--encoding", help="The input's encoding, such as cp949.")]
NoQuotingOption: TypeAlias = Annotated[bool, typer.Option("--no-quoting", help="Double quotes in CSV are ordinary characters.")]


def report_language(chosen: Language | None, *, environment: Mapping[str, str] = os.environ) -> Language:
    """Return the language of a report: the chosen one, else that of the locale, which the first of three variables that is set names.

    >>> report_language(None, environment={"LC_ALL": "", "LANG": "ko_KR.UTF-8"})
    'ko'
    """
    locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environment.get(name))), "")
    return chosen or ("ko" if _KOREAN.match(locale) else "en")


OLD_SPELLINGS = {
    "--dimension": ("--dimensions",),
    "--format": ("--output-format",),
    "--k": ("--clusters", "--top"),
    "--rerank-model": ("--reranker",),
    "--text-columns": ("--text-column",),
}
"""What options were called in Munjang 0.1, and what they are called in commands that have no option of the old name; until 0.3."""


class HouseCommand(TyperCommand):
    """A command that still takes old spellings of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Respell old options, then read the arguments."""
        own = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*(_respell(each, own) for each in args[:end]), *args[end:]])


def _respell(argument: str, own: set[str]) -> str:
    name, equals, value = argument.partition("=")
    now = next((each for each in OLD_SPELLINGS.get(name, ()) if each in own and name not in own), name)
    return f"{now}{equals}{value}"


_pooling: ContextVar[Pooling | None] = ContextVar("pooling", default=None)


def chosen_pooling() -> Pooling | None:
    """Return what --pooling says in the command that runs."""
    return _pooling.get()


class HouseTyper(typer.Typer):
    """Commands in the house style: one that has ModelOption or ModelArgument has --pooling too; `chosen_pooling` reads it."""

    def command(self, *names: Any, **settings: Any) -> Callable[[Function], Function]:
        """Register a command."""
        register = super().command(*names, **{"cls": HouseCommand} | settings)

        def decorate(function: Function) -> Function:
            register(_with_pooling(function) if _takes_model(function) else function)
            return function

        return decorate


def _takes_model(function: Callable[..., Any]) -> bool:
    taken = inspect.signature(function, eval_str=True).parameters
    return "model" in taken and taken["model"].annotation in (ModelOption, ModelArgument) and "pooling" not in taken


def _with_pooling(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with one option more, which stands behind --model."""

    @functools.wraps(function)
    def call(*, pooling: Pooling | None = None, **given: Any) -> Any:
        before = _pooling.set(pooling)
        try:
            return function(**given)
        finally:
            _pooling.reset(before)

    signature = inspect.signature(function, eval_str=True)
    added = inspect.Parameter("pooling", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=PoolingOption)
    taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()]
    at = 1 + next(place for place, each in enumerate(taken) if each.name == "model")
    call.__signature__ = signature.replace(parameters=[*taken[:at], added, *taken[at:]])  # type: ignore[attr-defined]
    return call


def new_app() -> typer.Typer:
    """Return an empty command in the house style."""
    return HouseTyper(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def examples(*lines: str) -> str:
    r"""Return the end of a help page: examples, each on its own line.

    >>> examples("munjang demo")
    '\x08\nExample:\n  munjang demo'
    """
    return "\b\n" + ("Example" if len(lines) == 1 else "Examples") + ":\n" + "\n".join(f"  {line}" for line in lines)
