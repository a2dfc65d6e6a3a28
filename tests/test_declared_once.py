"""Every verb's options stand in one place: command line and server have the same names, defaults and bounds, and Python checks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from inspect import unwrap as inspect_unwrap
from typing import Annotated, Any, Literal, get_args

import pytest
import typer.main

from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.entailment import classify_by_entailment
from munjang.analyze.classify.fitting import fit_classifier
from munjang.analyze.classify.zero_shot import classify_texts
from munjang.analyze.clusters import cluster
from munjang.analyze.keywords import extract_keywords, find_cluster_phrases
from munjang.analyze.layout import lay_out
from munjang.analyze.match import match
from munjang.analyze.pairs import mine
from munjang.analyze.topics.fitting import fit_topics
from munjang.errors import UsageError
from munjang.library.library import Library
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import REQUIRED, Declared, Option, check_options, declared_options

VERBS: dict[str, tuple[tuple[Callable[..., Any], ...], str | None]] = {
    "classify apply": ((apply_classifier,), None),
    "classify fit": ((fit_classifier,), None),
    "classify label": ((classify_texts, classify_by_entailment), None),
    "cluster": ((cluster, find_cluster_phrases), "/api/clusters"),
    "encode": ((SentenceEncoder.encode,), None),
    "keywords": ((extract_keywords,), "/api/keywords"),
    "map": ((cluster, find_cluster_phrases, lay_out), "/api/map"),
    "match": ((match,), None),
    "pairs": ((mine,), "/api/pairs"),
    "search": ((Library.search,), "/api/libraries/{name}/search"),
    "topics fit": ((fit_topics,), "/api/topics"),
}
"""Commands with the verbs that they do, and the path of the same on the server."""

OWN = {("pairs", "threshold"): "its default depends on --dedupe"}
"""Options that a command declares itself, and why."""

OPTIONS = [(command, verb, name) for command, (verbs, _) in VERBS.items() for verb in verbs for name in declared_options(verb)]


def parameter_of(command: str, name: str) -> Any:
    first, *rest = command.split()
    found = typer.main.get_command(import_module(f"munjang.cli.{first}").app)
    for word in rest:
        found = found.commands[word]
    return next(each for each in found.params if each.name == name)


def property_of(path: str, name: str) -> dict[str, Any]:
    app = pytest.importorskip("munjang.serve.app", reason="the extra serve is not installed")
    operation = next(each for each in app.all_operations() if each.path == path and each.method == "POST")
    schema = operation.request.model_json_schema()["properties"][name]
    return {key: value for part in (schema, *schema.get("anyOf", ())) for key, value in part.items()} | {"default": schema.get("default")}


@pytest.mark.parametrize(("command", "verb", "name"), OPTIONS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_command_line_has_the_option_as_it_is_declared(command: str, verb: Callable[..., Any], name: str) -> None:
    declared, parameter = declared_options(verb)[name], parameter_of(command, name)
    if (command, name) in OWN:
        return
    assert parameter.help == declared.option.help
    assert parameter.required is (declared.default is REQUIRED)
    assert (parameter.default or ()) == declared.default if declared.takes_several else parameter.default == declared.default
    if declared.choices:
        assert get_args(parameter.type_descriptor.annotation) == declared.choices
    else:
        assert (parameter.min, parameter.max) == (declared.option.min, declared.option.max)


@pytest.mark.parametrize(("command", "verb", "name"), OPTIONS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_server_has_the_option_as_it_is_declared_or_a_lower_bound(command: str, verb: Callable[..., Any], name: str) -> None:
    path = VERBS[command][1]
    if path is None:
        pytest.skip("the server does not have this verb")
    declared, found = declared_options(verb)[name], property_of(path, name)
    assert found["description"] == declared.option.help
    if not declared.takes_several:
        assert found["default"] == declared.default
    assert found.get("minimum") == declared.option.min
    if declared.option.max is not None:
        assert found["maximum"] <= declared.option.max
    assert set(found.get("enum", ())) <= set(declared.choices)


@pytest.mark.parametrize("command", VERBS)
def test_python_refuses_what_is_out_of_bounds(command: str) -> None:
    for verb in VERBS[command][0]:
        options = declared_options(verb)
        defaults = {name: each.default for name, each in options.items()}
        check_options(verb, defaults)
        for name, each in options.items():
            for wrong in wrong_values(each):
                with pytest.raises(UsageError, match=rf"^{name} is .*, expected"):
                    check_options(verb, defaults | {name: wrong})


def wrong_values(declared: Declared) -> list[Any]:
    if declared.choices:
        return ["no such thing"]
    low, high = declared.option.min, declared.option.max
    return [*([] if low is None else [low - 1, float("nan")]), *([] if high is None else [high + 1])]


def test_no_option_is_declared_a_second_time_by_its_command() -> None:
    for command, (verbs, _) in VERBS.items():
        names = {name for verb in verbs for name in declared_options(verb)}
        function = import_module(f"munjang.cli.{command.split()[0]}")
        own = set(function.__dict__[{"map": "draw"}.get(command, command.split()[-1])].__annotations__)
        assert names & own <= {name for where, name in OWN if where == command}, command


@dataclass(frozen=True)
class Verb:
    top: Annotated[int, Option("How many.", min=1)] = 5
    share: Annotated[float, Option("How much.", min=0, max=1)] = 0.5
    way: Annotated[Literal["a", "b"], Option("Which.")] = "a"


@pytest.mark.parametrize(
    ("most", "choices"),
    [({"top": 0}, {}), ({"share": 0.4}, {}), ({"share": 2.0}, {}), ({}, {"way": ["b"]}), ({}, {"way": ["a", "z"]}), ({"none": 1}, {})],
    ids=["below the least", "below the default", "above the bound", "without the default", "a new choice", "no option"],
)
def test_a_server_may_lower_a_bound_and_nothing_else(most: dict[str, float], choices: dict[str, list[str]]) -> None:
    base = pytest.importorskip("munjang.serve.schemas.base", reason="the extra serve is not installed")
    with pytest.raises(ValueError, match="server may|no option"):
        base.takes_options(Verb, most=most, choices=choices)
    assert set(base.takes_options(Verb, most={"top": 9, "share": 0.6})(base.OwnModel).model_fields) == {"top", "share", "way"}


def test_many_searches_have_the_defaults_of_one() -> None:
    one, many = (signature(inspect_unwrap(each)).parameters for each in (Library.search, Library.search_many))
    shared = set(one) & set(many) - {"self"}
    assert shared == set(one) - {"self", "query", "like", "unlike"}
    assert {name: one[name].default for name in shared} == {name: many[name].default for name in shared}
