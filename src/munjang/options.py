"""What a verb can be asked for, declared once.

A public function says it in its own signature, a dataclass in its fields: `top: Annotated[int, Option("The most keywords.", min=1)] = 5`.
Name, type, default, bounds and help stand nowhere else. The command line, the server's requests, the page's bounds and the
reference pages read them from here, and the function itself checks its arguments by them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Optional, TypeAlias, Union, get_args, get_origin, get_type_hints

from munjang.errors import UsageError, quote
from munjang.types import Compute, Device, EngineName, Format, LongText, Pooling, Precision
from munjang.wording import brief_repr

Verb: TypeAlias = Callable[..., Any]
"""A public function, or a dataclass, whose parameters are declared."""

REQUIRED: Any = inspect.Parameter.empty
"""The default of an option that must be given."""


@brief_repr
@dataclass(frozen=True)
class Option:
    """How an option is explained and bounded."""

    help: str
    min: float | None = None
    """The least value that is taken."""
    max: float | None = None
    """The largest value that is taken; a server may lower it."""
    flags: tuple[str, ...] = ()
    """How the command line spells it; without them, --name."""
    commas: bool = False
    """Whether the command line takes several values in one, with commas between them; otherwise the flag is repeated."""


Seed: TypeAlias = Annotated[int, Option("The random seed; the same seed gives the same result.", min=0, max=2**32 - 1)]
"""A seed that numpy's and scikit-learn's generators take."""

ComputeOption: TypeAlias = Annotated[
    Compute, Option("The model's arithmetic; int8 is faster for a small loss of quality, auto is what the device is fastest in.")
]
DeviceOption: TypeAlias = Annotated[Device, Option("Where the model computes. Default: the best device that is installed and works.")]
EngineOption: TypeAlias = Annotated[
    EngineName, Option("What runs the model. Default: torch only for families that the fast engine does not know.")
]
TrainDeviceOption: TypeAlias = Annotated[
    Device, Option("Where to train: cpu, cuda, rocm or mps. Default: an NVIDIA or AMD GPU if torch finds one, else the CPU.")
]
PoolingOption: TypeAlias = Annotated[Pooling | None, Option("How token vectors are pooled, for a model folder that does not say.")]
PrecisionOption: TypeAlias = Annotated[Precision, Option("The number format of the output.")]
DimensionsOption: TypeAlias = Annotated[int | None, Option("Keep this many leading dimensions (Matryoshka models).", min=1)]
NormalizeOption: TypeAlias = Annotated[bool, Option("Normalise vectors to length 1.")]
PromptNameOption: TypeAlias = Annotated[
    str | None, Option("The name of the model's prompt to put before every text; also of its route or task adapter.")
]
LongTextOption: TypeAlias = Annotated[LongText, Option("How to handle texts beyond the model's limit.")]

TextColumnOption: TypeAlias = Annotated[str | None, Option("The column with the text.")]
IdColumnOption: TypeAlias = Annotated[str | None, Option("The column with ids.")]
FormatOption: TypeAlias = Annotated[Format | None, Option("The input format, if the file name does not show it.")]
EncodingOption: TypeAlias = Annotated[str, Option("The input's encoding, such as cp949.")]


@dataclass(frozen=True)
class Declared:
    """One option of a verb."""

    name: str
    type: Any
    """Without `Annotated`."""
    default: Any
    option: Option

    def without_default(self, words: str) -> Declared:
        """Return the option with None as its default, and in its help, in words, what follows from that."""
        option = replace(self.option, help=f"{self.option.help} Default: {words}.")
        return Declared(self.name, Optional[self.type], None, option)  # noqa: UP045

    @cached_property
    def plain_type(self) -> Any:
        """What can be written on a command line and in JSON: of several types, those that are not objects of ours."""
        parts = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        return Union[tuple(part for part in parts if get_origin(part) is not None or part in (bool, int, float, str, NoneType))]  # noqa: UP007

    @cached_property
    def objects(self) -> tuple[type, ...]:
        """Types of ours beside the plain ones, which only Python can give."""
        parts = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else ()
        return tuple(part for part in parts if isinstance(part, type) and part not in (bool, int, float, str, NoneType))

    @cached_property
    def kind(self) -> Any:
        """The plain type without None."""
        inner = [each for each in get_args(self.plain_type) if each is not NoneType]
        return inner[0] if get_origin(self.plain_type) is Union and len(inner) == 1 else self.plain_type

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The values that are taken, where they can be listed."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @cached_property
    def takes_several(self) -> bool:
        """Whether the value is a sequence of values."""
        return get_origin(self.kind) in (tuple, list, Sequence)

    @property
    def bounds(self) -> str:
        """What a number must be, in words."""
        low, high = self.option.min, self.option.max
        if low is None or high is None:
            return f"at least {low:,}" if high is None else f"at most {high:,}"
        return f"{low:,} to {high:,}"

    def allows(self, value: Any) -> bool:
        """Say whether a value is one of the choices, or a number within the bounds."""
        if value is None:
            return self.kind is not self.plain_type
        if self.objects and isinstance(value, self.objects):
            return True
        if self.choices:
            return value in self.choices
        low, high = self.option.min, self.option.max
        if self.takes_several and (low is not None or high is not None):
            return all((low is None or each >= low) and (high is None or each <= high) for each in value)
        return bool((low is None or value >= low) and (high is None or value <= high))


@cache
def declared_options(verb: Verb) -> Mapping[str, Declared]:
    """Return a verb's options by name, in order; parameters that are not options (texts, a model) are not among them."""
    options = (declare(*parameter) for parameter in _parameters(inspect.unwrap(verb)))
    return {option.name: option for option in options if option is not None}


def declare(name: str, annotation: Any, default: Any) -> Declared | None:
    """Return a parameter as an option, if its annotation makes it one."""
    marks = [mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, Option)]
    return Declared(name, get_args(annotation)[0], default, marks[0]) if get_origin(annotation) is Annotated and marks else None


def help_of(annotation: Any) -> str:
    """Return the help of an alias such as `ComputeOption`."""
    return str(next(mark.help for mark in annotation.__metadata__ if isinstance(mark, Option)))


def default_of(verb: Verb, name: str) -> Any:
    """Return the default of one option of a verb."""
    return declared_options(verb)[name].default


def options_for(verb: Verb, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values that are options of the verb."""
    return {name: values[name] for name in declared_options(verb) if name in values}


def check_options(verb: Verb, values: Mapping[str, Any]) -> None:
    """Refuse a value that is out of its bounds or not one of the choices; `values` may hold more than options, such as `locals()`."""
    for name, declared in declared_options(verb).items():
        value = values[name]
        if not declared.allows(value):
            if declared.choices:
                raise UsageError(f"{name} is {quote(str(value))}, expected one of {', '.join(declared.choices)}")
            raise UsageError(f"{name} is {value}, expected {declared.bounds}")


def _parameters(verb: Any) -> list[tuple[str, Any, Any]]:
    if is_dataclass(verb):
        hints = get_type_hints(verb, include_extras=True)
        return [(each.name, hints[each.name], REQUIRED if each.default is MISSING else each.default) for each in fields(verb)]
    return [(each.name, each.annotation, each.default) for each in inspect.signature(verb, eval_str=True).parameters.values()]
