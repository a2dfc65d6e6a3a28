"""A text → the numbers, units, model codes and variants in it, and whether those of two texts contradict each other.

To a sentence encoder "128GB" and "256GB" are nearly the same; to whoever matches products, articles or doses they are not. Amounts are
brought to one unit for each kind of quantity (1kg = 1000g, 2개입 = pack of 2, 제3조 = Article 3). Amounts and codes contradict each other
where both texts state them and neither text states all that the other does; what only one text states is no contradiction. Variants of a
product (Pro, Max, Mini, 프로) must be the same on both sides: Pro against none is another product.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from munjang.wording import brief_repr

UNITS: dict[str, dict[str, float]] = {
    "mass": {
        "kg|킬로그램|킬로|kilograms?": 1000,
        "mg|밀리그램": 0.001,
        "g|그램|grams?": 1,
        "lbs?|pounds?|파운드": 453.592,
        "oz|온스": 28.35,
    },
    "volume": {"ml|밀리리터|cc|㎖": 1, "cl": 10, "l|리터|lit(?:er|re)s?|ℓ": 1000},
    "length": {
        "mm|밀리미터|밀리": 1,
        "cm|센티미터|센티": 10,
        "km|킬로미터": 1e6,
        "m|미터|met(?:er|re)s?": 1000,
        'inch(?:es)?|인치|형|"|″': 25.4,
    },
    "area": {"m2|제곱미터": 1, "평형|평": 3.3058},
    "data": {"tb|테라바이트|테라": 1e12, "gb|기가바이트|기가": 1e9, "mb|메가바이트|메가": 1e6, "kb|킬로바이트": 1e3},
    "time": {"초|sec(?:ond)?s?": 1, "분|min(?:ute)?s?": 60, "시간|hours?|hrs?": 3600, "일|days?": 86_400, "주|weeks?": 604_800},
    "months": {"개월|months?": 1, "년|years?|yrs?": 12},
    "charge": {"mah|밀리암페어": 1, "ah": 1000},
    "power": {"w|와트|watts?": 1, "kw|킬로와트": 1000},
    "voltage": {"v|볼트|volts?": 1},
    "frequency": {"hz|헤르츠": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
    "share": {"%|퍼센트|percent": 1},
    "money": {"만\\s?원": 10_000, "원|won|krw": 1},
    "count": {
        "개입|개들이|개|입|매입|매|장|병|캔|팩|봉지|봉|포|박스|상자|세트|켤레|롤|정|구|알|ea|pcs?|pieces?|packs?|pk|count|ct|cans?|bottles?|rolls?|"
        "sets?|sheets?|tablets?|capsules?": 1
    },
    "persons": {"인용|인분|인|명|persons?|people|servings?": 1},
    "generation": {"세대|gen(?:eration)?s?": 1},
    "article": {"조": 1},
    "paragraph": {"항": 1},
    "item": {"호": 1},
    "chapter": {"장": 1},
    "volume number": {"권": 1},
    "part": {"편|부": 1},
    "round": {"회|차|화": 1},
    "tone": {"단계": 1},
}
"""Kind of quantity → its units (as patterns) and what one of each is worth in the smallest."""

ORDINAL_UNITS = ("article", "paragraph", "item", "chapter", "volume number", "part", "round")
"""Kinds that Korean writes 제3조 and English Article 3."""

BEFORE = {
    "article": "article|art\\.|section|sec\\.|§",
    "paragraph": "paragraph|para\\.",
    "item": "item|no\\.|number",
    "chapter": "chapter|ch\\.",
    "volume number": "volume|vol\\.",
    "part": "part",
    "round": "episode|ep\\.|season|round",
    "generation": "gen|generation",
    "count": "pack of|set of|box of|case of",
}
"""Kinds whose word stands before the number."""

VARIANTS = {
    "pro": "pro|프로",
    "max": "max|맥스",
    "plus": "plus|플러스",
    "ultra": "ultra|울트라",
    "mini": "mini|미니",
    "lite": "lite|(?<![가-힣])라이트",
    "air": "air(?!\\s?(?:con|fry|fri|pur|mat|pump|filter|bag|line|port))|에어(?!\\s?(?:컨|프라이|매트|펌프|백|워셔|건))",
    "se": "se",
    "fe": "fe",
}

NATIVE_NUMBERS = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10}
ENGLISH_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}

ROUNDED = (25.4, 28.35, 453.592, 3.3058)
"""Inches, ounces, pounds and pyeong: shops round them when they give metric units, 55 inches as 138cm."""
ROUNDED_BY = 0.015

_NUMBER = r"\d+(?:\.\d+)?"
_LETTER = "a-z가-힣"
_WORDS = NATIVE_NUMBERS | ENGLISH_NUMBERS


@brief_repr
@dataclass(frozen=True)
class Numbers:
    """What a text states."""

    amounts: tuple[tuple[str, tuple[tuple[float, bool], ...]], ...]
    """Kind of quantity → values in one unit, ascending, and whether a rounded unit was converted; "" holds numbers without a unit."""
    codes: frozenset[str]
    variants: frozenset[str]


def numbers_differ(a: str, b: str) -> bool:
    """Say whether the numbers, units, codes or variants of two texts contradict each other.

    >>> numbers_differ("갤럭시 S23 128GB", "Galaxy S23 256GB"), numbers_differ("쌀 1kg", "rice 1000 g")
    (True, False)
    """
    return contradict(read_numbers(a), read_numbers(b))


def contradict(a: Numbers, b: Numbers) -> bool:
    """Say whether two readings contradict each other."""
    if a.variants != b.variants:
        return True
    theirs = dict(b.amounts)
    for kind, values in a.amounts:
        if kind and kind in theirs and not _holds_other(values, theirs[kind]):
            return True
    return _do_names_differ(a, b)


@lru_cache(maxsize=200_000)
def read_numbers(text: str) -> Numbers:
    """Return the numbers, codes and variants of a text.

    >>> read_numbers("iPhone 13 Pro 128GB").amounts
    (('', ((13.0, False),)), ('data', ((128000000000.0, False),)))
    """
    rest = _normalise(text)
    found: defaultdict[str, set[tuple[float, bool]]] = defaultdict(set)
    variants = set()
    for name, pattern in _VARIANTS:
        rest, hits = pattern.subn(" ", rest)
        if hits:
            variants.add(name)
    for kind, factor, pattern in _AMOUNTS:
        for match in pattern.finditer(rest):
            found[kind].add((_read_amount(match["n"], kind) * factor, factor in ROUNDED))
        rest = pattern.sub(" ", rest)
    codes = {code.replace("-", "") for code in _CODE.findall(rest)}
    rest = _CODE.sub(" ", rest)
    found[""] |= {(float(number), False) for number in re.findall(_NUMBER, rest)}
    amounts = tuple((kind, tuple(sorted(values))) for kind, values in sorted(found.items()) if values)
    return Numbers(amounts, frozenset(codes), frozenset(variants))


def _normalise(text: str) -> str:
    lower = unicodedata.normalize("NFKC", text).casefold()
    lower = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", lower)
    lower = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", lower)
    lower = re.sub(r"(?<=\d)\+", " plus ", lower)
    return re.sub(r"\b([a-z]{4,})-?(?=\d+\b)", r"\1 ", lower)  # iphone13 is a name and a number, s23 a code


def _read_amount(written: str, kind: str) -> float:
    amount = float(_WORDS.get(written, written))
    return amount / 1024 * 1000 if kind == "data" and amount % 1024 == 0 else amount  # 1024GB is 1TB


def _holds_other(a: tuple[tuple[float, bool], ...], b: tuple[tuple[float, bool], ...]) -> bool:
    few, many = sorted((a, b), key=len)
    return all(any(_are_equal(x, y) for y in many) for x in few)


def _are_equal(a: tuple[float, bool], b: tuple[float, bool]) -> bool:
    tolerance = ROUNDED_BY if a[1] != b[1] else 1e-6
    return abs(a[0] - b[0]) <= tolerance * max(abs(a[0]), abs(b[0]))


def _do_names_differ(a: Numbers, b: Numbers) -> bool:
    """Compare what names a thing: numbers without a unit and codes; 4070 may stand for rtx4070."""
    ours, theirs = _read_names(a), _read_names(b)
    if not ours or not theirs:
        return False
    few, many = sorted((ours, theirs), key=len)
    return not all(any(_are_same_name(x, y) for y in many) for x in few)


def _read_names(numbers: Numbers) -> frozenset[str]:
    return numbers.codes | {f"{value:g}" for value, _ in dict(numbers.amounts).get("", ())}


def _are_same_name(x: str, y: str) -> bool:
    if x == y:
        return True
    bare, code = sorted((x, y), key=lambda name: not name.replace(".", "").isdigit())
    return bare.replace(".", "").isdigit() and re.findall(r"\d+(?:\.\d+)?", code) == [bare] and not code[0].isdigit()


def _compile_amounts() -> Iterator[tuple[str, float, re.Pattern[str]]]:
    """Yield how each kind is written, the more particular first: 제3조, Article 3, pack of 3, 3개입."""
    for kind in ORDINAL_UNITS:
        for units, factor in UNITS[kind].items():
            yield kind, factor, re.compile(rf"제\s?(?P<n>{_NUMBER})\s?(?:{units})")
    for kind, words in BEFORE.items():
        yield kind, 1.0, re.compile(rf"(?<![{_LETTER}])(?:{words})[\s-]?(?P<n>{_NUMBER})(?![\d{_LETTER}.])")
    yield "count", 1.0, re.compile(rf"(?:(?<=[\dlg개입매병캔팩])\s?x|[×*])\s?(?P<n>{_NUMBER})(?![\da-z.])")  # 500ml x 20
    written = "|".join(_WORDS)
    for units, factor in UNITS["count"].items():
        yield "count", factor, re.compile(rf"(?<![{_LETTER}])(?P<n>{written})[\s-]?(?:{units})(?![a-z])")
    for kind, table in UNITS.items():
        for units, factor in table.items():
            yield kind, factor, re.compile(rf"(?<![\d.])(?P<n>{_NUMBER})[\s-]?(?:{units})(?![a-z\d])")


_AMOUNTS = tuple(_compile_amounts())
_ANY_VARIANT = "|".join(words for words in VARIANTS.values())
_VARIANTS = tuple((name, re.compile(rf"(?<![a-z])(?:{words})(?:(?![{_LETTER}])|(?={_ANY_VARIANT}))")) for name, words in VARIANTS.items())
_CODE = re.compile(r"(?<![a-z0-9])(?=[a-z0-9-]*[a-z])(?=[a-z0-9-]*\d)[a-z0-9]+(?:-[a-z0-9]+)*(?![a-z0-9])")
