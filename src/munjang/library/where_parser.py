"""A filter as people write it → a condition: `year >= 2020 and category = '소설'`.

    filter := all ("or" all)*
    all    := one ("and" one)*
    one    := "not" one | "(" filter ")" | KEY test
    test   := ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") VALUE
            | ["not"] "in" "(" VALUE ("," VALUE)* ")" | ["not"] "like" TEXT | ["not"] "contains" VALUE | "is" ["not"] "null"
    KEY    := a word, or anything in double quotes (a quote inside is doubled)
    VALUE  := 'text' (a quote inside is doubled) | number | true | false

What a condition means stands in where.py. Nothing here is SQL, and an error points at its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from munjang.errors import UsageError, shown
from munjang.library.where import AllOf, AnyOf, Compare, Condition, Contains, IsNull, Like, Not, OneOf, Operator, Value
from munjang.text.unicode import clean
from munjang.wording import count

MAX_LENGTH = 65_536
MAX_DEPTH = 20
MAX_TERMS = 500
MAX_VALUES = 5_000
MAX_PATTERN = 1_000

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")+")"""
    r"""|(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?(?![\w.]))"""
    r"""|(?P<word>[^\W\d][\w.\-]*)|(?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,)"""
)
_SIGNS: dict[str, Operator] = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_RESERVED = {"and", "or", "not", "in", "like", "contains", "is", "null", "true", "false"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def keyword(self) -> str:
        return self.text.lower() if self.kind in ("word", "sign") else ""


def parse_where(where: str) -> Condition:
    """Return the condition that a filter states.

    >>> parse_where("year >= 2020 and not category = '소설'")
    AllOf(conditions=(Compare(key='year', operator='>=', value=2020), Not(condition=Compare(key='category', operator='=', value='소설'))))
    """
    if len(where) > MAX_LENGTH:
        raise UsageError(f"the filter has {count(len(where), 'character')}, the limit is {MAX_LENGTH:,}\n  filter by fewer values")
    return _Parser(clean(where)).whole()


class _Parser:
    """Recursive descent; `at` is the next token."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.tokens = self._split()
        self.at = 0
        self.terms = 0

    def whole(self) -> Condition:
        condition = self._any(0)
        if self._next().kind != "end":
            raise self._error('"and", "or" or the end')
        return condition

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self.where):
            found = _TOKEN.match(self.where, at)
            if found is None:
                raise self._error_at(at, "a key, a value, a comparison or a parenthesis")
            if found.lastgroup != "space":
                tokens.append(_Token(str(found.lastgroup), found.group(), at))
            at = found.end()
        return [*tokens, _Token("end", "", len(self.where))]

    def _any(self, depth: int) -> Condition:
        found = [self._all(depth)]
        while self._take("or"):
            found.append(self._all(depth))
        return found[0] if len(found) == 1 else AnyOf(tuple(found))

    def _all(self, depth: int) -> Condition:
        found = [self._one(depth)]
        while self._take("and"):
            found.append(self._one(depth))
        return found[0] if len(found) == 1 else AllOf(tuple(found))

    def _one(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise self._error(f"at most {MAX_DEPTH} levels of parentheses and nots")
        if self._take("not"):
            return Not(self._one(depth + 1))
        if self._take("("):
            condition = self._any(depth + 1)
            self._expect(")")
            return condition
        return self._test(self._key())

    def _test(self, key: str) -> Condition:
        self.terms += 1
        if self.terms > MAX_TERMS:
            raise self._error(f"at most {MAX_TERMS} tests; use in (…) for many values")
        token = self._next()
        if token.keyword in _SIGNS:
            self.at += 1
            return Compare(key, _SIGNS[token.keyword], self._value())
        if self._take("is"):
            negated = self._take("not")
            self._expect("null")
            return Not(IsNull(key)) if negated else IsNull(key)
        negated = self._take("not")
        condition = self._word_test(key)
        return Not(condition) if negated else condition

    def _word_test(self, key: str) -> Condition:
        if self._take("in"):
            self._expect("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
                if len(values) > MAX_VALUES:
                    raise self._error(f"at most {MAX_VALUES:,} values")
            self._expect(")")
            return OneOf(key, tuple(values))
        if self._take("contains"):
            return Contains(key, self._value())
        if self._take("like"):
            return Like(key, self._pattern())
        raise self._error("a comparison such as = or >=, in, like, contains or is null")

    def _key(self) -> str:
        token = self._next()
        if token.kind == "quoted":
            self.at += 1
            return token.text[1:-1].replace('""', '"')
        if token.kind != "word" or token.keyword in _RESERVED:
            raise self._error('a key (a word, or any key in "double quotes")')
        self.at += 1
        return token.text

    def _value(self) -> Value:
        token = self._next()
        if token.kind == "text":
            self.at += 1
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number":
            self.at += 1
            return _number(token.text)
        if token.keyword in ("true", "false"):
            self.at += 1
            return token.keyword == "true"
        raise self._error("a value: 'text' in single quotes, a number, true or false")

    def _pattern(self) -> str:
        token = self._next()
        if token.kind != "text" or len(token.text) > MAX_PATTERN:
            raise self._error(f"a pattern 'in single quotes' of at most {MAX_PATTERN:,} characters")
        return cast(str, self._value())

    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, keyword: str) -> bool:
        found = self._next().keyword == keyword
        self.at += found
        return found

    def _expect(self, keyword: str) -> None:
        if not self._take(keyword):
            raise self._error(f'"{keyword}"')

    def _error(self, expected: str) -> UsageError:
        return self._error_at(self._next().at, expected)

    def _error_at(self, at: int, expected: str) -> UsageError:
        found = shown(self.where[at : at + 20]) if at < len(self.where) else "the end"
        return UsageError(f"the filter {shown(self.where)}, character {at + 1}: found {found}, expected {expected}")


def _number(text: str) -> int | float:
    """Return a whole number as int when 64 bits hold it, anything else as float."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    return float(text[:400])
