"""Munjang for `llm`, the command: `llm embed -m munjang -c "비가 온다"`. The entry point `llm` of this package names this file.

`munjang` is the default model, `munjang/NAME` each further one that loads by name. Nothing is loaded before the first text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from munjang.adapters.loading import make_missing_error
from munjang.models.registry import list_models

try:
    import llm
except ImportError as error:
    raise make_missing_error("llm", "llm", error) from error

AT_ONCE = 256
"""Texts between two commits of `llm embed-multi`."""


class Register(Protocol):
    """What llm hands to a plugin."""

    def __call__(self, model: Any, /) -> None:
        """Make a model known."""


class MunjangEmbeddingModel(llm.EmbeddingModel):  # type: ignore[misc]  # llm is not there where types are checked
    """One of Munjang's models under its name in llm."""

    batch_size = AT_ONCE

    def __init__(self, model_id: str, name: str | None) -> None:
        self.model_id = model_id
        self.name = name

    def embed_batch(self, items: Iterable[str], *, key: str | None = None) -> Iterator[list[float]]:
        """Yield one vector per text; there is no key."""
        from munjang.adapters.loading import load_encoder_once  # llm imports every plugin for every command

        del key
        for vectors in load_encoder_once(self.name).encode_stream(items, block=AT_ONCE):
            yield from vectors.tolist()


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_embedding_models(register: Register) -> None:
    """Tell llm which models there are."""
    register(MunjangEmbeddingModel("munjang", None))
    for found in list_models():
        if _reads_single_texts(found.path):
            register(MunjangEmbeddingModel(f"munjang/{found.name}", found.name))


def _reads_single_texts(folder: Path) -> bool:
    """Say whether a folder is a sentence encoder's; a cross-encoder's has no modules."""
    return (folder / "modules.json").is_file()
