"""Two kinds of request: a dialect's, which ignores fields it does not know as its own servers do, and Munjang's, which names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from munjang.options import REQUIRED, Declared, Verb, declared_options, options_for


class DialectModel(BaseModel):
    """A request or an answer of a dialect that others made."""

    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class OwnModel(BaseModel):
    """A request or an answer of Munjang's own."""

    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())


Request = TypeVar("Request", bound=OwnModel)


def takes_options(
    *verbs: Verb,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
    most: Mapping[str, float] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> Callable[[type[Request]], type[Request]]:
    """Add the options of verbs to a request: their names, types, defaults and bounds.

    `only` and `without` choose among them. A server may lower a bound: `most` holds the largest value of a number or the most values of a
    list, `choices` those of the choices that it offers.
    """
    options = {name: declared for verb in verbs for name, declared in declared_options(verb).items()}
    options = {name: options[name] for name in (only or options) if name not in without}
    lowered, offered = most or {}, choices or {}
    unknown = [name for name in (*lowered, *offered) if name not in options]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: no option of these verbs")
    found: dict[str, Any] = {name: _field(each, lowered.get(name), offered.get(name)) for name, each in options.items()}

    def decorate(base: type[Request]) -> type[Request]:
        made: type[Request] = create_model(base.__name__, __base__=base, __module__=base.__module__, __doc__=base.__doc__, **found)
        return made

    return decorate


def options_in(body: BaseModel, verb: Verb) -> dict[str, Any]:
    """Return what a request asks of a verb."""
    return options_for(verb, dict(body))


def _field(declared: Declared, most: float | None, choices: Sequence[str] | None) -> Any:
    option = declared.option
    if most is not None and not (
        declared.takes_several or (declared.allows(most) and (declared.default is None or declared.default <= most))
    ):
        raise ValueError(f"{declared.name}: a server may lower a bound, {most} does not")
    if not set(choices or ()) <= set(declared.choices) or (choices and declared.default not in choices):
        raise ValueError(f"{declared.name}: a server may offer fewer choices, and the default among them")
    kind: Any = Literal[tuple(choices)] if choices else declared.plain_type
    if declared.takes_several:
        return Annotated[_as_list(declared.kind), Field(max_length=None if most is None else int(most), description=option.help)], Field(
            default_factory=list
        )
    highest = option.max if most is None else most
    default = ... if declared.default is REQUIRED else declared.default
    return Annotated[kind, Field(ge=option.min, le=highest, description=option.help)], default


def _as_list(kind: Any) -> Any:
    """Return a sequence's type as JSON has it: lists within lists."""
    arguments = get_args(kind)
    return list[_as_list(arguments[0])] if arguments else kind  # type: ignore[misc]
