"""A model folder → a short name that changes whenever its vectors would.

Hashes what decides a vector: weights, tokenizer, configuration. Cards, logs and file times do not count.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from munjang.engine.folder import ModelFolder

COUNTED_SUFFIXES = (".safetensors", ".model")
COUNTED_NAMES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "config.json",
    "modules.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
BLOCK = 1 << 20


def fingerprint(folder: ModelFolder, *, settings: str = "") -> str:
    """Return 32 hexadecimal digits; `settings` is whatever else decides a vector (compute type, longest text …)."""
    digest = hashlib.sha256(settings.encode())
    for file in _counted(folder.path):
        digest.update(str(file.relative_to(folder.path)).encode() + b"\0")
        with file.open("rb") as handle:
            while block := handle.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()[:32]


def _counted(path: Path) -> list[Path]:
    files = (file for depth in ("*", "*/*") for file in path.glob(depth) if file.is_file())
    return sorted(file for file in files if file.suffix in COUNTED_SUFFIXES or file.name in COUNTED_NAMES)
