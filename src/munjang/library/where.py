"""What a filter over metadata means: a tree of conditions, and whether a document's metadata meet it.

The meaning is the same in every store; `matches` says it in Python, stores say it in SQL with bound values (`where_sql.py`),
and `parse_where` makes the tree from what people write.

A number is compared with numbers, and with texts that read as a number (CSV files know only texts); a text is compared with texts, by code
points. A key is one of the metadata; `id` and `text` are the document's own where its metadata have no key of that name. True and false are
1 and 0. `Like` has % and _, ignores the case of ASCII letters and knows no escape. `Contains` asks for a part
of a text or a member of a list. A test of a missing or unfitting value is false, so `Not` of it is true; `IsNull` is true for missing
keys and for null.

A filter as people write it → a condition: `year >= 2020 and category = '소설'`.

    filter := all ("or" all)*
    all    := one ("and" one)*
    one    := "not" one | "(" filter ")" | KEY test
    test   := ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") VALUE
            | ["not"] "in" "(" VALUE ("," VALUE)* ")" | ["not"] "like" TEXT | ["not"] "contains" VALUE | "is" ["not"] "null"
    KEY    := a word, or anything in double quotes (a quote inside is doubled)
    VALUE  := 'text' (a quote inside is doubled) | number | true | false

Nothing here is SQL, and an error points at its place.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from munjang.errors import UsageError, quote
from munjang.text.unicode import clean
from munjang.wording import count

Value: TypeAlias = str | int | float | bool
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

_NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,3})?")
_OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Compare:
    """The key's value stands in this relation to the value."""

    key: str
    operator: Operator
    value: Value


@dataclass(frozen=True)
class OneOf:
    """The key's value equals one of the values."""

    key: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Like:
    """The key's text fits the pattern."""

    key: str
    pattern: str


@dataclass(frozen=True)
class Contains:
    """The key's text holds this text, or the key's list holds this value."""

    key: str
    value: Value


@dataclass(frozen=True)
class IsNull:
    """The key is missing, or its value is null."""

    key: str


@dataclass(frozen=True)
class Not:
    """The condition is not met."""

    condition: Condition


@dataclass(frozen=True)
class AllOf:
    """Every condition is met."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one condition is met."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Compare | OneOf | Like | Contains | IsNull | Not | AllOf | AnyOf


OWN_KEYS = ("id", "text")
"""Keys that every document has beside its metadata."""


def keys_of(condition: Condition) -> list[str]:
    """Return the keys that a condition asks for, in order.

    >>> keys_of(AllOf((Compare("year", ">", 2020), Not(IsNull("kind")), Compare("year", "<", 2030))))
    ['year', 'kind']
    """
    match condition:
        case AllOf(conditions) | AnyOf(conditions):
            return list(dict.fromkeys(key for each in conditions for key in keys_of(each)))
        case Not(inner):
            return keys_of(inner)
        case _:
            return [condition.key]


def number_of(value: object) -> float | int | None:
    """Return the number that a value is or reads as, or None.

    >>> number_of(" 2021"), number_of("1e3"), number_of("soon"), number_of(7)
    (2021.0, 1000.0, None, 7)
    """
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) < 400 and _NUMBER.fullmatch(value.strip(" ")):
        return float(value)
    return None


def matches(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    """Say whether metadata meet a condition; the document's own `id` and `text` are handed in among them.

    >>> matches(Compare("year", ">=", 2020), {"year": "2021"})
    True
    """
    match condition:
        case AllOf(conditions):
            return all(matches(each, metadata) for each in conditions)
        case AnyOf(conditions):
            return any(matches(each, metadata) for each in conditions)
        case Not(inner):
            return not matches(inner, metadata)
        case IsNull(key):
            return metadata.get(key) is None
        case Compare(key, sign, value):
            return _compare(metadata.get(key), sign, value)
        case OneOf(key, values):
            return any(_compare(metadata.get(key), "=", value) for value in values)
        case Like(key, pattern):
            return isinstance(found := metadata.get(key), str) and like_pattern(pattern).fullmatch(found) is not None
        case Contains(key, value):
            return _contains(metadata.get(key), value)


def like_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a `Like` as a regular expression, which takes each part at its first place and never tries another."""
    first, *others = ("".join(map(_like_character, part)) for part in pattern.split("%"))
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(f"{first}{middle}.*{others[-1]}" if others else first, re.DOTALL | re.ASCII)


def _like_character(character: str) -> str:
    if character == "_":
        return "."
    return f"(?i:{re.escape(character)})" if character.isascii() else re.escape(character)


def _compare(found: object, sign: Operator, value: Value) -> bool:
    if isinstance(value, str):
        return isinstance(found, str) and _OPERATORS[sign](found, value)
    number = number_of(found)
    return number is not None and _OPERATORS[sign](number, value)


def _contains(found: object, value: Value) -> bool:
    if isinstance(found, list):
        return any(_compare(each, "=", value) for each in found)
    return isinstance(found, str) and isinstance(value, str) and value in found


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
        return cast("str", self._value())

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
        found = quote(self.where[at : at + 20]) if at < len(self.where) else "the end"
        return UsageError(f"the filter {quote(self.where)}, character {at + 1}: found {found}, expected {expected}")


def _number(text: str) -> int | float:
    """Return a whole number as int when 64 bits hold it, anything else as float."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    return float(text[:400])
