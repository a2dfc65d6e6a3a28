"""What a client calls input → vectors: bounds checked, tokens counted, the queue entered, cuts remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from munjang.serve.call import Call
from munjang.serve.engines import BatchedEngine
from munjang.serve.errors import NothingSent, Refusal
from munjang.serve.prepare import CUT, Cutting, Prepared, prepare_ids, prepare_texts
from munjang.types import Vectors
from munjang.vectors.similarity import normalize as unit
from munjang.vectors.similarity import similarity as all_pairs
from munjang.wording import count

Input: TypeAlias = str | list[str] | list[int] | list[list[int]]

SMALL = 8_000
"""Characters, or bytes of a body, up to which texts are tokenised without changing the thread."""


async def vectors_of(call: Call, given: Input, cutting: Cutting = CUT, *, field: str, prompt_name: str | None = None) -> Vectors:
    """Return one vector per text of the input, as `encode` would offline."""
    prepared = await _prepare(call, given, field, prompt_name, cutting)
    call.note(texts=len(prepared.ids), tokens=prepared.tokens, truncated=prepared.truncated)
    engine = call.encoder.way(prompt_name).engine
    assert isinstance(engine, BatchedEngine)
    loop = asyncio.get_running_loop()
    sizes = [len(ids) for ids in prepared.ids]
    lane = engine.lane(prepared.hidden_prefix)
    work_item = call.service.batcher.submit(lane, prepared.ids, sizes, loop=loop, work=call.request_work)
    assert work_item.future is not None
    rows = await work_item.future
    return np.stack(rows)


def shape_vectors(call: Call, vectors: Vectors, *, dimensions: int | None, normalize: bool) -> Vectors:
    """Cut vectors to so many numbers, and give them length one where that is wanted."""
    model = call.encoder
    if dimensions is not None and dimensions > model.engine.dimension:
        raise Refusal(422, f"dimensions is {dimensions:,}, the model's vectors have {model.engine.dimension:,}", field="dimensions")
    width = dimensions or model.dimension
    if width < vectors.shape[1]:
        vectors = np.ascontiguousarray(vectors[:, :width])
    elif model.normalized:  # they have length one already
        return vectors
    return unit(vectors) if normalize else vectors


def list_inputs(given: Input) -> Sequence[str | list[int]]:
    """Return an input's texts or token arrays; one alone is a list of one.

    >>> list_inputs("rain"), list_inputs([5, 7]), list_inputs(["rain", "snow"])
    (['rain'], [[5, 7]], ['rain', 'snow'])
    """
    if isinstance(given, str) or _is_array(given):
        return [given]
    return given  # type: ignore[return-value]


def cosines(a_ND: Vectors, b_MD: Vectors) -> Vectors:
    """Return the cosine of every row with every row; rounding takes none beyond −1 and 1."""
    scores_NM: Vectors = np.clip(all_pairs(a_ND, b_MD), -1.0, 1.0)
    return scores_NM


def check_texts(call: Call, texts: Sequence[Any], *, field: str, limit: int | None = None) -> None:
    """Refuse no texts, and more than the limit."""
    most = limit or call.service.settings.limits.max_texts
    if not texts:
        raise NothingSent(f"{field} is empty, expected 1 to {most:,} texts", field=field)
    if len(texts) > most:
        raise Refusal(413, f"{field} holds {count(len(texts), 'text')}, the limit is {most:,} a request", field=field)


async def _prepare(call: Call, given: Input, field: str, prompt_name: str | None, cutting: Cutting) -> Prepared:
    model = call.encoder
    if isinstance(given, str):
        given = [given]
    check_texts(call, list_inputs(given), field=field)
    if _is_array(given):
        return prepare_ids(model, [given], cutting)
    if _is_arrays(given):
        return await call.service.in_text_thread(prepare_ids, model, given, cutting)
    texts: list[str] = given  # type: ignore[assignment]
    if sum(map(len, texts)) <= SMALL:
        return prepare_texts(model, texts, cutting, prompt_name=prompt_name)
    return await call.service.in_text_thread(lambda: prepare_texts(model, texts, cutting, prompt_name=prompt_name))


def _is_array(given: Input) -> TypeGuard[list[int]]:
    return bool(given) and isinstance(given[0], int)


def _is_arrays(given: Input) -> TypeGuard[list[list[int]]]:
    return bool(given) and isinstance(given[0], list)
