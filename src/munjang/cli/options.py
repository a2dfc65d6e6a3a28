"""The options that commands share, so that one word means one thing everywhere."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from munjang.errors import UsageError, quote
from munjang.options import REQUIRED, Declared, Verb, declare, declared_options, help_of
from munjang.options import ComputeOption as ComputeOption
from munjang.options import DeviceOption as DeviceOption
from munjang.options import EncodingOption as EncodingOption
from munjang.options import EngineOption as EngineOption
from munjang.options import FormatOption as FormatOption
from munjang.options import IdColumnOption as IdColumnOption
from munjang.options import PoolingOption as PoolingOption
from munjang.options import TextColumnOption as TextColumnOption
from munjang.types import DEFAULT_COMPUTE, DEFAULT_DEVICE, DEFAULT_ENCODING, DEFAULT_ENGINE, Compute, Device, EngineName, Pooling
from munjang.wording import Language

if TYPE_CHECKING:
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.text.records import BadLines, Record

Function = TypeVar("Function", bound=Callable[..., Any])


def _model_names(incomplete: str) -> list[str]:
    """Return the models whose name begins so, for a shell that completes."""
    from munjang.models.registry import list_models

    return [found.name for found in list_models() if found.name.startswith(incomplete)]


ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A model's name or folder. Default: the default model.", autocompletion=_model_names),
]
ModelsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--model", "-m", help="A model's name or folder; may be repeated. Without it, the default model.", autocompletion=_model_names
    ),
]
ModelArgument: TypeAlias = Annotated[str, typer.Argument(metavar="MODEL", help="A model's name or folder.", autocompletion=_model_names)]
CrossModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A cross-encoder's name or folder; with --late a sentence encoder's.", autocompletion=_model_names),
]
ClassifierOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="The name or folder of a cross-encoder, or the folder of a pair classifier.",
        autocompletion=_model_names,
    ),
]
ComparedModelArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODEL", help="The first model's name or folder.", autocompletion=_model_names)
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputOption: TypeAlias = Annotated[Path | None, typer.Option("--output", "-o", help="Write the result to this file.")]
LibraryComputeOption: TypeAlias = Annotated[
    Compute | None,
    typer.Option("--compute", help=f"{help_of(ComputeOption)} Default: as the library was encoded, else {DEFAULT_COMPUTE}."),
]
LanguageOption: TypeAlias = Annotated[
    Language | None, typer.Option("--language", help="The report's language. Default: Korean under a Korean locale, else English.")
]
TextsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="FILE", help='txt, csv, tsv, jsonl, json or parquet, also gzipped; "-" is standard input; or a library.'),
]
_KOREAN = re.compile("ko(rean)?(?![a-z])", re.IGNORECASE)  # ko, ko_KR.UTF-8, Korean_Korea.949; not kok_IN, which is Konkani
NoQuotingOption: TypeAlias = Annotated[bool, typer.Option("--no-quoting", help="Treat double quotes in CSV as ordinary characters.")]


@dataclass(frozen=True)
class Columns:
    """How files of texts are read."""

    text_column: TextColumnOption = None
    id_column: IdColumnOption = None
    format: FormatOption = None
    encoding: EncodingOption = DEFAULT_ENCODING
    no_quoting: NoQuotingOption = False

    @property
    def quoting(self) -> bool | None:
        """What a reader is told of quotes: nothing, unless they are ordinary characters."""
        return False if self.no_quoting else None

    def read(self, file: str | Path, *, bad: BadLines | None = None) -> Iterator[Record]:
        """Yield the texts of a file."""
        from munjang.text.readers import read_texts

        return read_texts(
            file,
            text_column=self.text_column,
            id_column=self.id_column,
            format=self.format,
            quoting=self.quoting,
            encoding=self.encoding,
            bad=bad,
        )


@dataclass(frozen=True)
class EncoderChoice:
    """Which model encodes, and how it computes."""

    model: ModelOption = None
    compute: ComputeOption = DEFAULT_COMPUTE

    def load(self) -> PromptedEncoder:
        """Load the model, as an encoder that shows a progress bar."""
        from munjang.cli.load_model import load_encoder

        return load_encoder(self.model, compute=self.compute)


@dataclass(frozen=True)
class ModelChoice:
    """Which model computes, and how; by default what a library was encoded with, else the default model in float32."""

    model: ModelOption = None
    compute: LibraryComputeOption = None


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


@dataclass(frozen=True)
class ModelSettings:
    """The options that every command with a model has."""

    pooling: PoolingOption = None
    device: DeviceOption = DEFAULT_DEVICE
    engine: EngineOption = DEFAULT_ENGINE


_DEFAULTS = ModelSettings()
_settings: ContextVar[ModelSettings] = ContextVar("settings", default=_DEFAULTS)


def chosen_pooling() -> Pooling | None:
    """Return what --pooling says in the command that runs."""
    return _settings.get().pooling


def chosen_device() -> Device:
    """Return what --device says in the command that runs."""
    return _settings.get().device


def chosen_engine() -> EngineName:
    """Return what --engine says in the command that runs."""
    return _settings.get().engine


class Takes:
    """Marks a parameter that stands for the options of verbs: `options: Annotated[Chosen, Takes(cluster)]`.

    `only` and `without` choose among them. `defaults` are those of the package that does the verb for a purpose of its own; `worded`
    says in words what follows where an option is not given; its value is None then.
    """

    def __init__(
        self,
        *verbs: Verb,
        only: Sequence[str] | None = None,
        without: Sequence[str] = (),
        defaults: Mapping[str, Any] | None = None,
        worded: Mapping[str, str] | None = None,
    ) -> None:
        options = {name: each for verb in verbs for name, each in declared_options(verb).items()}
        options |= {name: replace(options[name], default=value) for name, value in (defaults or {}).items()}
        options |= {name: options[name].without_default(words) for name, words in (worded or {}).items()}
        self.options = {name: options[name] for name in (only or options) if name not in without}


_MODELS = (ModelOption, ModelsOption, ModelArgument, CrossModelOption, ClassifierOption, ComparedModelArgument)

Chosen: TypeAlias = dict[str, Any]
"""The values of a verb's options by name."""


class HouseTyper(typer.Typer):
    """Commands in the house style: verbs' options are taken from their declarations, groups of options from dataclasses.

    A command that has one of the options or arguments for a model has those of ModelSettings too; `chosen_pooling` and others read them. A
    cross-encoder pools nothing, and two models that are compared have their own pooling.
    """

    def command(self, *names: Any, **settings: Any) -> Callable[[Function], Function]:
        """Register a command."""
        register = super().command(*names, **{"cls": HouseCommand} | settings)

        def decorate(function: Function) -> Function:
            whole = _expand(function)
            register(_with_model_settings(whole))
            return function

        return decorate


def _expand(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with one option in the place of each that a parameter stands for."""
    signature = inspect.signature(function, eval_str=True)
    made: dict[str, tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]] = {}
    for name, parameter in signature.parameters.items():
        taken = next((mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, Takes)), None)
        if taken is not None:
            made[name] = [_verb_parameter(each) for each in taken.options.values()], _values_of(taken)
        elif is_dataclass(parameter.annotation):
            made[name] = _group_parameters(parameter.annotation), _build(parameter.annotation)
        elif (declared := declare(name, parameter.annotation, parameter.default)) is not None:
            made[name] = [_verb_parameter(declared)], _take_only(name)
    if not made:
        return function

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        built = {name: build({each.name: given.pop(each.name) for each in parts}) for name, (parts, build) in made.items()}
        return function(**given, **built)

    parts = [part for each in signature.parameters.values() for part in (made[each.name][0] if each.name in made else [each])]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in parts]
    )
    return call


def _take_only(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda values: values[name]


def _build(group: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda values: group(**values)


def _group_parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    defaults = {each.name: REQUIRED if each.default is MISSING else each.default for each in fields(group)}
    options = {name: declare(name, hints[name], default) for name, default in defaults.items()}
    return [
        _parameter(name, hints[name], default) if (option := options[name]) is None else _verb_parameter(option)
        for name, default in defaults.items()
    ]


def _verb_parameter(declared: Declared) -> inspect.Parameter:
    option, several = declared.option, declared.takes_several
    flag = f"--{declared.name.replace('_', '-')}"
    flags = option.flags or ((flag,) if declared.kind is bool else ())
    bounded: dict[str, Any] = {} if declared.choices else {"min": option.min, "max": option.max}
    if several and option.commas:
        written = ",".join(map(str, declared.default or ())) or None
        return _parameter(declared.name, Annotated[str | None, typer.Option(*(option.flags or (flag,)), help=option.help)], written)
    if several:
        item = int if get_args(declared.kind)[0] is int else str
        listed = typer.Option(*(option.flags or (flag,)), help=option.help, **(bounded if item is int else {}))
        return _parameter(declared.name, Annotated[list[item] | None, listed], None)  # type: ignore[valid-type]
    return _parameter(declared.name, Annotated[declared.plain_type, typer.Option(*flags, help=option.help, **bounded)], declared.default)


def _values_of(taken: Takes) -> Callable[[dict[str, Any]], Chosen]:
    """Return what makes the verb's values of the command line's; lists of words in one value are parted by commas."""

    def values(given: dict[str, Any]) -> Chosen:
        chosen = {}
        for name, value in given.items():
            declared = taken.options[name]
            if declared.takes_several and declared.option.commas:
                value = declared.default if value is None else _part_values(declared, value)
            elif declared.takes_several:
                nested = get_origin(get_args(declared.kind)[0]) is not None
                value = tuple(_part(each) if nested else each for each in value or ()) or declared.default
            chosen[name] = value
        return chosen

    return values


def _part_values(declared: Declared, written: str) -> tuple[Any, ...]:
    if int not in get_args(declared.kind):
        return _part(written)
    try:
        return tuple(int(part) for part in written.split(","))
    except ValueError:
        flag = next(iter(declared.option.flags), f"--{declared.name.replace('_', '-')}")
        raise UsageError(f"{flag} {quote(written)}: expected numbers with commas between them, such as 0,2,4") from None


def _part(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _with_model_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the options of ModelSettings behind that for its model; a command without a model as it is."""
    signature = inspect.signature(function, eval_str=True)
    at = next((place for place, each in enumerate(signature.parameters.values(), 1) if each.annotation in _MODELS), 0)
    if not at:
        return function
    is_pooled = list(signature.parameters.values())[at - 1].annotation in (ModelOption, ModelsOption, ModelArgument)
    own = {*signature.parameters, *(() if is_pooled else ("pooling",))}
    added = [each for each in _group_parameters(ModelSettings) if each.name not in own]

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        before = _settings.set(ModelSettings(**{each.name: given.pop(each.name) for each in added}))
        try:
            return function(**given)
        finally:
            _settings.reset(before)

    taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()]
    call.__signature__ = signature.replace(parameters=[*taken[:at], *added, *taken[at:]])  # type: ignore[attr-defined]
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
