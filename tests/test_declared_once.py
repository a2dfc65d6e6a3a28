"""Every verb's options stand in one place: command line and server have the same names, defaults and bounds, and Python checks them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from inspect import unwrap as inspect_unwrap
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import pytest

import munjang
from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.fitting import fit_classifier
from munjang.analyze.classify.zero_shot import classify_by_entailment, classify_texts
from munjang.analyze.clusters import cluster
from munjang.analyze.keywords import extract_keywords, find_cluster_phrases
from munjang.analyze.layout import lay_out
from munjang.analyze.match import match
from munjang.analyze.pairs import mine_pairs
from munjang.analyze.topics.assign import find_topics
from munjang.analyze.topics.edit import split_topic
from munjang.analyze.topics.fitting import fit_topics
from munjang.bulk.encode_batch import encode_batch
from munjang.bulk.job import BulkSettings
from munjang.bulk.run import encode_bulk
from munjang.bulk.worker_config import WorkerConfig
from munjang.cli.commands import find, load_command
from munjang.cli.compress import CompressionSteps
from munjang.errors import UsageError
from munjang.evaluate.calibrate import calibrate
from munjang.evaluate.clustering import evaluate_clustering
from munjang.evaluate.compare import compare_sts
from munjang.evaluate.nli import evaluate_nli
from munjang.evaluate.pairs import evaluate_pairs
from munjang.evaluate.rerank import evaluate_rerank
from munjang.evaluate.retrieval import evaluate_retrieval
from munjang.evaluate.sts import evaluate_sts
from munjang.evaluate.translation import evaluate_translation
from munjang.evaluate.triplets import evaluate_triplets
from munjang.library.library import Library
from munjang.library.tune import tune
from munjang.models.compress.vocabulary import PruneOptions
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.score_pairs import score_pairs
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import REQUIRED, Declared, Option, check_options, declared_options
from munjang.serve.settings import ServerSettings
from munjang.text.morphology import analyse
from munjang.text.readers import read_texts
from munjang.train.ablate import run_ablation
from munjang.train.adapt.run import adapt_model
from munjang.train.augment import label_pairs, sample_pairs
from munjang.train.distill.run import DISTILL_STAGE, STUDENT, run_distillation
from munjang.train.examples import DataSource, TeacherRecipe
from munjang.train.mine import mine_negatives
from munjang.train.recipe import ModelRecipe, StageRecipe, TopKeys

VERBS: dict[str, tuple[tuple[Callable[..., Any], ...], str | None]] = {
    "ablate": ((run_ablation, StageRecipe, DataSource), None),
    "adapt": ((adapt_model, StageRecipe, ModelRecipe, TopKeys, DataSource), None),
    "add": ((Library.open, read_texts), "/api/libraries"),
    "augment": ((sample_pairs, label_pairs), None),
    "bulk": ((BulkSettings, WorkerConfig), None),
    "calibrate": ((calibrate,), None),
    "classify apply": ((apply_classifier,), None),
    "classify fit": ((fit_classifier,), None),
    "classify label": ((classify_texts, classify_by_entailment), None),
    "cluster": ((cluster, find_cluster_phrases), "/api/clusters"),
    "compare": ((compare_sts,), None),
    "compress": ((CompressionSteps, PruneOptions), None),
    "distill": ((run_distillation, StageRecipe, ModelRecipe, TeacherRecipe, TopKeys, DataSource), None),
    "encode": ((SentenceEncoder.encode, SentenceEncoder.load, read_texts), None),
    "evaluate clustering": ((evaluate_clustering,), None),
    "evaluate nli": ((evaluate_nli,), None),
    "evaluate pairs": ((evaluate_pairs,), None),
    "evaluate rerank": ((evaluate_rerank,), None),
    "evaluate retrieval": ((evaluate_retrieval,), None),
    "evaluate sts": ((evaluate_sts,), None),
    "evaluate translation": ((evaluate_translation,), None),
    "evaluate triplets": ((evaluate_triplets,), None),
    "keywords": ((extract_keywords,), "/api/keywords"),
    "map": ((cluster, find_cluster_phrases, lay_out), "/api/map"),
    "match": ((match,), None),
    "mine": ((mine_negatives, SentenceEncoder.load), None),
    "morphs": ((analyse,), None),
    "pairs": ((mine_pairs,), "/api/pairs"),
    "rerank": ((CrossEncoder.rank, CrossEncoder.load), None),
    "score": ((score_pairs,), "/api/score"),
    "search": ((Library.search,), "/api/libraries/{name}/search"),
    "serve": ((ServerSettings,), None),
    "topics find": ((find_topics,), None),
    "topics fit": ((fit_topics,), "/api/topics"),
    "topics split": ((split_topic,), None),
    "tune": ((tune,), None),
}
"""Commands with the verbs that they do, and the path of the same on the server."""

PARTS = {StageRecipe, ModelRecipe, DataSource}
"""Tables of a recipe, of which a command has only some keys as options."""

OWN = {
    ("pairs", "threshold"): "its default depends on --dedupe",
    ("compare", "resamples"): "its default depends on the data",
    ("adapt", "batch_size"): "its default depends on --method",
    ("adapt", "learning_rate"): "its default depends on --method",
    ("adapt", "dropout"): "its default depends on --method",
}
"""Options that a command has without the verb's default, and why."""

CHANGED: dict[tuple[str, str], Any] = {("distill", name): value for name, value in (DISTILL_STAGE | STUDENT).items()}
"""Defaults of a package that does the verb for a purpose of its own; they stand in `train/distill/run.py` alone."""

LATER = {("add", name) for name in ("patience", "distributed", *declared_options(read_texts))}
"""Options of a verb that a request of the server does not have."""


@cache
def command_of(name: str) -> Any:
    first, *rest = name.split()
    found = load_command(find(first))
    for word in rest:
        found = found.commands[word]
    return found


def has(command: str, verb: Callable[..., Any], name: str) -> bool:
    return verb not in PARTS or any(each.name == name for each in command_of(command).params)


OPTIONS = [
    (command, verb, name)
    for command, (verbs, _) in VERBS.items()
    for verb in verbs
    for name in declared_options(verb)
    if has(command, verb, name)
]


def parameter_of(command: str, name: str) -> Any:
    return next(each for each in command_of(command).params if each.name == name)


SERVED = [(path, verb, name) for command, verb, name in OPTIONS if (path := VERBS[command][1]) and (command, name) not in LATER]


@cache
def properties_of(path: str) -> dict[str, Any]:
    app = pytest.importorskip("munjang.serve.app", reason="the extra serve is not installed")
    operation = next(each for each in app.all_operations() if each.path == path and each.method == "POST")
    found: dict[str, Any] = operation.request.model_json_schema()["properties"]
    return found


def property_of(path: str, name: str) -> dict[str, Any]:
    schema = properties_of(path)[name]
    return {key: value for part in (schema, *schema.get("anyOf", ())) for key, value in part.items()} | {"default": schema.get("default")}


@pytest.mark.parametrize(("command", "verb", "name"), OPTIONS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_command_line_has_the_option_as_it_is_declared(command: str, verb: Callable[..., Any], name: str) -> None:
    declared, parameter = declared_options(verb)[name], parameter_of(command, name)
    if (command, name) in OWN:
        return
    assert parameter.help == declared.option.help
    assert parameter.required is (declared.default is REQUIRED)
    default = CHANGED.get((command, name), declared.default)
    if declared.takes_several and declared.option.commas:
        assert parameter.default == (",".join(map(str, default or ())) or None)
    elif declared.takes_several:
        assert parameter.default is None  # the verb's own where the flag is not given
    else:
        assert parameter.default == default
    if declared.choices:
        assert tuple(parameter.type.choices) == declared.choices
    else:
        bounds = getattr(parameter.type, "min", None), getattr(parameter.type, "max", None)
        assert bounds == (declared.option.min, declared.option.max)


@pytest.mark.parametrize(("path", "verb", "name"), SERVED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_server_has_the_option_as_it_is_declared_or_a_lower_bound(path: str, verb: Callable[..., Any], name: str) -> None:
    declared, found = declared_options(verb)[name], property_of(path, name)
    assert found["description"] == declared.option.help
    if not declared.takes_several:
        assert found["default"] == declared.default
    assert found.get("minimum") == declared.option.min
    if declared.option.max is not None:
        assert found["maximum"] <= declared.option.max
    assert set(found.get("enum", ())) <= set(declared.choices)


TOOLS = {"search": Library.search, "similar": Library.search, "keywords": extract_keywords}
"""Tools of the MCP server that do a verb."""


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_for_language_models_has_the_options_as_they_are_declared_or_a_lower_bound(tool: str) -> None:
    tools = pytest.importorskip("munjang.serve.mcp_tools", reason="the extra serve is not installed")
    with_write = tools.Toolbox(None, (), None, write=True)
    schema = with_write.find(tool).arguments.model_json_schema()["properties"]
    declared = {name: each for name, each in declared_options(TOOLS[tool]).items() if name in schema}
    assert len(declared) >= 2
    for name, each in declared.items():
        found = {key: value for part in (schema[name], *schema[name].get("anyOf", ())) for key, value in part.items()}
        assert found["description"] == each.option.help
        assert each.takes_several or schema[name].get("default") == each.default
        assert found.get("minimum") == each.option.min
        assert each.option.max is None or found["maximum"] <= each.option.max
        assert set(found.get("enum", ())) <= set(each.choices)


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
    wrong = [*([] if low is None else [low - 1, float("nan")]), *([] if high is None else [high + 1])]
    return [(value,) for value in wrong] if declared.takes_several else wrong


def test_no_option_is_declared_a_second_time_by_its_command() -> None:
    for command, (verbs, _) in VERBS.items():
        names = {name for verb in verbs for name in declared_options(verb)} - {"compute"}
        function = inspect_unwrap(command_of(command).callback)
        own = {name for name, hint in function.__annotations__.items() if "typer.Option(" in str(hint)}
        assert names & own <= {name for where, name in OWN if where == command}, command


ROOMS = ("adapters", "analyze", "bulk", "cli", "data", "evaluate", "library", "models", "serve", "text", "train")


@cache
def literal_defaults() -> tuple[tuple[str, str], ...]:
    """Return module and name of every default that is written out in a signature or a dataclass of a room."""
    return tuple(_find_literal_defaults())


def _find_literal_defaults() -> Iterator[tuple[str, str]]:
    root = Path(munjang.__file__).parent
    for path in (each for room in ROOMS for each in sorted((root / room).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            pairs: list[tuple[str, ast.expr | None]] = []
            if isinstance(node, ast.FunctionDef):
                args = [*node.args.posonlyargs, *node.args.args]
                places = args[len(args) - len(node.args.defaults) :]
                pairs = [(arg.arg, value) for arg, value in zip(places, node.args.defaults, strict=True)]
                pairs += [(arg.arg, value) for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
            elif isinstance(node, ast.ClassDef):
                pairs = [
                    (each.target.id, each.value)
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                ]
            for name, value in pairs:
                if isinstance(value, ast.Constant) and value.value not in (None, False, True, 0, 1, ""):
                    yield path.relative_to(root).as_posix(), name


def test_no_second_literal_default_of_a_declared_option_exists_in_commands_and_schemas() -> None:
    names = {name for verbs, _ in VERBS.values() for verb in verbs for name in declared_options(verb)}
    written = [(where, name) for where, name in literal_defaults() if where != "serve/settings.py"]  # which declares the server's own
    again = [(where, name) for where, name in written if where.startswith(("cli/", "serve/")) and name in names]
    assert set(again) <= {("cli/bench.py", name) for name in ("batch_size", "dimension", "k", "queries", "rounds", "steps")} | {
        ("cli/demo.py", "k"),
        ("cli/mcp.py", "port"),
    }


SHARED = ("compute", "device", "precision", "long_text", "encoding", "resamples", "score")


def test_a_shared_default_is_written_out_nowhere_but_beside_its_type() -> None:
    """Those that many signatures have; `precision` of a recipe is the arithmetic of training."""
    again = {(where, name) for where, name in literal_defaults() if name in SHARED}
    assert again <= {("train/recipe.py", "precision"), ("train/stage_run.py", "precision")}


def test_encode_bulk_takes_the_options_of_its_two_settings_as_keywords() -> None:
    given = {name: each for name, each in signature(encode_bulk).parameters.items() if each.kind is each.KEYWORD_ONLY}
    declared = {each.name: each.default for settings in (BulkSettings, WorkerConfig) for each in fields(settings)}
    assert {name: given[name].default for name in declared} == declared
    assert set(given) - set(declared) == {"model", "resume", "cache", "watch"}
    types = {name: hint for settings in (BulkSettings, WorkerConfig) for name, hint in get_type_hints(settings).items()}
    assert {name: get_type_hints(encode_bulk)[name] for name in declared} == types


def test_all_who_encode_have_the_defaults_of_encode() -> None:
    one = declared_options(SentenceEncoder.encode)
    for other in (SentenceEncoder.encode_with_report, SentenceEncoder.encode_stream, PromptedEncoder.encode, BulkSettings, encode_batch):
        shared = {name: each for name, each in declared_options(other).items() if name in one}
        assert len(shared) >= 4
        assert {name: (each.default, each.option) for name, each in shared.items()} == {
            name: (one[name].default, one[name].option) for name in shared
        }


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
    base = pytest.importorskip("munjang.serve.schema", reason="the extra serve is not installed")
    with pytest.raises(ValueError, match="server may|no option"):
        base.takes_options(Verb, most=most, choices=choices)
    assert set(base.takes_options(Verb, most={"top": 9, "share": 0.6})(base.OwnModel).model_fields) == {"top", "share", "way"}


def test_many_searches_have_the_defaults_of_one() -> None:
    one, many = (signature(inspect_unwrap(each)).parameters for each in (Library.search, Library.search_many))
    shared = set(one) & set(many) - {"self"}
    assert shared == set(one) - {"self", "query", "like", "unlike"}
    assert {name: one[name].default for name in shared} == {name: many[name].default for name in shared}
