"""One long row of token ids → overlapping windows that a model can take.

Ids come in without special tokens and go out the same way; `Tokenizer.wrap` adds the special tokens to each window, and pooling the
windows' vectors is left to the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.errors import UsageError


def windows(ids: Sequence[int], *, size: int, stride: int) -> list[list[int]]:
    """Cut ids into windows of at most `size` that start every `stride` ids and together hold every id.

    No ids give one empty window, so that a text always has a vector. No window lies wholly inside the one before it.

    >>> windows([1, 2, 3, 4, 5], size=3, stride=2)
    [[1, 2, 3], [3, 4, 5]]
    """
    if size < 1 or not 1 <= stride <= size:
        raise UsageError(f"windows of size {size} with stride {stride}: expected 1 ≤ stride ≤ size")
    starts = range(0, max(len(ids) - size, 0) + stride, stride)
    return [list(ids[start : start + size]) for start in starts]
