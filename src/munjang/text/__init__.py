"""Text as it comes in: Unicode policy, tokenizers, windows, batches, readers, Korean morphology.

`munjang.text.analyse` is the one verb that can be had from here; it is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from munjang.text.morphology import analyse as analyse


def __getattr__(name: str) -> Any:
    if name != "analyse":
        raise AttributeError(f"module 'munjang.text' has no attribute {name!r}")
    from munjang.text.morphology import analyse

    return analyse
