"""An answer of text-embeddings-inference: its content, and in headers what it took to compute it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sized
from typing import Any

from munjang.serve.call import Call, Reply


def computed(call: Call, content: Any, read: Iterable[Sized]) -> Reply:
    """Return the answer with `x-compute-type`, `x-compute-time`, `x-compute-characters`, `x-compute-tokens` and `x-total-time`.

    Times are whole milliseconds since the request's head came in; both are the same, as in text-embeddings-inference. `read` are the texts
    as often as the model read them; an array of token ids counts its ids. Tokens are those that were computed, without what was cut off.
    """
    milliseconds = str(int((time.perf_counter() - call.start) * 1000))
    headers = {
        "x-compute-type": "cpu",
        "x-compute-time": milliseconds,
        "x-compute-characters": str(sum(map(len, read))),
        "x-compute-tokens": str(call.errand.tokens),
        "x-total-time": milliseconds,
    }
    return Reply(content, headers=headers | call.truncation_headers())
