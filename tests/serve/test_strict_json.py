"""JSON that is well meant passes unchanged; every trap is refused, never a crash."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic", reason="the extra serve is not installed")

from munjang.serve.endpoint import parse_json
from munjang.serve.errors import Refusal

NICE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TRAPS = {
    "empty": b"",
    "blank": b"  \n",
    "NaN": b'{"a": NaN}',
    "Infinity": b"[-Infinity]",
    "1e999": b'{"a": 1e999}',
    "long integer": b"9" * 5000,
    "too many keys": b"{" + b",".join(b'"%d":1' % number for number in range(16_385)) + b"}",
    "duplicate keys": b'{"input": "a", "input": "b"}',
    "deep lists": b"[" * 200 + b"]" * 200,
    "very deep lists": b"[" * 1_000_000,
    "deep objects": b'{"a":' * 100 + b"1" + b"}" * 100,
    "lone surrogate": b'{"input": "\\ud800"}',
    "lone low surrogate in a key": b'{"\\udc00": 1}',
    "UTF-16": '{"input": "a"}'.encode("utf-16"),
    "UTF-32": '{"input": "a"}'.encode("utf-32"),
    "latin-1": '{"input": "é"}'.encode("latin-1"),
    "surrogate bytes": b'"\xed\xa0\x80"',
    "overlong": b'"\xc0\xaf"',
    "byte order mark": b"\xef\xbb\xbf{}",
    "two values": b"{} {}",
    "trailing comma": b"[1,]",
    "control character": b'"\x01"',
    "unfinished": b'{"input": "a',
    "escaped quotes without end": b'"' + b'\\"' * 500_000 + b"[" * 40,
    "comment": b"{} // no",
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS)
def test_a_trap_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse_json(body)
    assert caught.value.http_status == 400


@settings(max_examples=100, deadline=None)
@given(NICE)
def test_what_json_writes_is_read_back(value: object) -> None:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        assert parse_json(body) == json.loads(body)
    except (Refusal, UnicodeDecodeError):
        assert any("\ud800" <= sign <= "\udfff" for sign in body.decode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        parse_json(body)
    except Refusal:
        pass


def test_brackets_in_texts_are_not_nesting() -> None:
    value = {"input": ["[" * 500, '{"\\"' * 50]}
    assert parse_json(json.dumps(value).encode()) == value


def test_surrogate_pairs_are_characters() -> None:
    assert parse_json(b'"\\ud83d\\ude00"') == "😀"
