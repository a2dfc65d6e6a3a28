"""A name on the Hugging Face hub → a folder in the models directory. The only place in Munjang that downloads, and only when asked.

Weights in safetensors, JSON, text and tokenizer files come over; nothing that could run. The folder appears when all of it is there and
has been read as a model.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from munjang.engine.folder import read_folder
from munjang.engine.weights import find_weights
from munjang.errors import InputError, MissingExtra, UsageError, shown
from munjang.models.registry import models_home
from munjang.whole_file import folder_beside, make_folder, sync, sync_folder

WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "README.md")
UNWANTED = ("onnx/*", "openvino/*", "coreml/*")

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)

Download = Callable[..., Any]


def pull(name: str, *, revision: str | None = None, download: Download | None = None) -> Path:
    """Download a model and return its folder."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(f"{shown(name)} is no name on the hub; expected something like owner/model")
    target = models_home() / name
    if target.exists():
        raise UsageError(f"{target}: exists already\n  remove the folder to fetch it again")
    make_folder(target.parent)
    temporary = folder_beside(target)
    try:
        _fetch(name, revision, temporary, download or _hub())
        shutil.rmtree(temporary / ".cache", ignore_errors=True)
        find_weights(_base_folder(temporary))
        sync_folder(temporary)
        temporary.replace(target)
        sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
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
