"""Bytes of a body → a JSON value that holds no trap.

Refused, each with its name: what is not UTF-8 (UTF-16 too), NaN and infinities, numbers that do not fit, an object that has a key twice
or too many keys, nesting beyond the limit, and lone surrogates. All of it takes time in proportion to the body. Which fields there should
be is left to the schemas.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from munjang.errors import quote
from munjang.limits import SERVE_LIMITS
from munjang.serve.errors import Refusal
from munjang.text.records import first_repeated

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)  # matches at every quote, so a scan is linear
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_DIGITS = 400
"""Digits of a whole number, at most; no field needs more, and converting very long ones is slow."""


def parse_json(body: bytes, *, max_depth: int = SERVE_LIMITS.max_json_depth) -> Any:
    """Return the value, or refuse the body with status 400.

    >>> parse_json(b'{"input": "rain"}')
    {'input': 'rain'}
    """
    if not body.strip():
        raise Refusal(400, "the body is empty, expected JSON")
    _check_depth(body, max_depth)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(400, f"byte {error.start:,} of the body is not UTF-8, which JSON is written in") from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Refusal(400, f"the body is not JSON: {error.msg} at character {error.pos:,}") from None
    except RecursionError:
        raise Refusal(400, f"the JSON is nested deeper than {max_depth} levels") from None
    if _SURROGATE.search(body):
        _check_surrogates(value)
    return value


def _check_depth(body: bytes, limit: int) -> None:
    if body.count(b"[") + body.count(b"{") <= limit:
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(body):
        sign = found.group()
        if sign in (b"[", b"{"):
            depth += 1
            if depth > limit:
                raise Refusal(400, f"the JSON is nested deeper than {limit} levels")
        elif sign in (b"]", b"}"):
            depth -= 1


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(400, "a text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > SERVE_LIMITS.max_json_keys:
        raise Refusal(400, f"an object has {len(pairs):,} keys, the limit is {SERVE_LIMITS.max_json_keys:,}")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal(400, f"the key {quote(first_repeated(name for name, _ in pairs) or '')} stands twice in one object")
    return found


def _float(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise Refusal(400, f"the number {quote(written, 30)} is too large")
    return number


def _integer(written: str) -> int:
    if len(written) > _DIGITS:
        raise Refusal(400, f"the number {quote(written, 30)} has more than {_DIGITS} digits")
    return int(written)


def _constant(written: str) -> Any:
    raise Refusal(400, f"{written} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant)
