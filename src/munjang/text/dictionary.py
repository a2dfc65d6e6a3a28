"""A dictionary of a user's own: a UTF-8 file of lines with tabs → words, synonyms, variants and stop words.

    word      무선충전기   NNG            a word that stays whole, and its part of speech (a proper noun where none is named)
    synonym   휴대폰       핸드폰  폰      each finds the others
    means     갤럭시       삼성 휴대폰      the first finds the others, and not the other way
    variant   쥬스        주스            the first is another spelling of the second
    stop      추천                       says nothing in a question

Empty lines and lines that begin with # mean nothing. The same entries give the same `text`, whatever their order and spacing, so a library
that keeps it knows whether it changed. `Dictionary.spell` writes variants in their usual way, before a text is split into words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from munjang.errors import InputError, quote
from munjang.text.unicode import clean
from munjang.wording import brief_repr

MAX_BYTES = 256 * 2**10
LONGEST = 100
"""Characters of one entry."""

TAGS = ("NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "MM", "MAG", "IC", "XR", "SL")
"""Parts of speech that a word may have (Sejong's)."""

_ONE_WORD = re.compile("[가-힣]{2,}")
_KINDS = {"word": (1, 2), "synonym": (2, 50), "means": (2, 50), "variant": (2, 2), "stop": (1, 1)}
"""How many fields each kind of line has, at least and at most."""


@brief_repr
@dataclass(frozen=True)
class Dictionary:
    """Entries of a dictionary, in NFC."""

    words: tuple[tuple[str, str], ...] = ()
    """Words and their parts of speech."""
    synonyms: tuple[tuple[str, ...], ...] = ()
    """Each finds the others."""
    meanings: tuple[tuple[str, ...], ...] = ()
    """The first of each finds the others."""
    variants: tuple[tuple[str, str], ...] = ()
    """A spelling, and the usual one."""
    stop_words: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, (self.words, self.synonyms, self.meanings, self.variants, self.stop_words)))

    @cached_property
    def text(self) -> str:
        """The dictionary as a file: equal dictionaries have equal texts."""
        lines = [
            *(("word", *each) for each in self.words),
            *(("synonym", *each) for each in self.synonyms),
            *(("means", *each) for each in self.meanings),
            *(("variant", *each) for each in self.variants),
            *(("stop", each) for each in self.stop_words),
        ]
        return "".join("\t".join(line) + "\n" for line in sorted(lines))

    @cached_property
    def user_words(self) -> tuple[str, ...]:
        """Words as Kiwi gets them: form, tab, part of speech; the dictionary's terms are nouns."""
        return tuple(sorted("\t".join(each) for each in (*self.words, *((term, "NNG") for term in self.terms))))

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Words of synonyms and meanings, written without a space, that are no words of their own: whole, but found by their parts too.

        >>> Dictionary(synonyms=(("마우스 패드", "장패드", "mat"),)).terms
        ('장패드',)
        """
        own = {form for form, _ in self.words}
        listed = {entry for group in (*self.synonyms, *self.meanings) for entry in group}
        return tuple(sorted(entry for entry in listed - own if _ONE_WORD.fullmatch(entry)))

    def spell(self, text: str) -> str:
        """Return a text with every variant in its usual spelling.

        >>> Dictionary(variants=(("쥬스", "주스"),)).spell("사과쥬스")
        '사과주스'
        """
        return text if self._spelling is None else self._spelling.sub(lambda found: self._usual[found[0].casefold()], text)

    @cached_property
    def _usual(self) -> dict[str, str]:
        own = {usual.casefold(): usual for _, usual in self.variants}  # so that a variant within its usual spelling is none
        return own | {variant.casefold(): usual for variant, usual in self.variants}

    @cached_property
    def _spelling(self) -> re.Pattern[str] | None:
        longest_first = sorted(self._usual, key=lambda each: (-len(each), each))
        parts = [rf"(?<![a-z0-9]){re.escape(each)}(?![a-z0-9])" if each.isascii() else re.escape(each) for each in longest_first]
        return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def read_dictionary(path: str | Path) -> Dictionary:
    """Return the dictionary in a file, or say which of its lines is wrong."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{path.name}: has {size:,} bytes, the limit of a dictionary is {MAX_BYTES:,}")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})\n  name a file of lines such as: word, a tab, 무선충전기") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: byte {error.start:,} is not UTF-8\n  save the dictionary as UTF-8") from None
    return parse_dictionary(text, where=path.name)


def parse_dictionary(text: str, *, where: str = "dictionary") -> Dictionary:
    r"""Return the dictionary that a text holds.

    >>> parse_dictionary("word\t무선충전기\tNNG\nsynonym\t휴대폰\t핸드폰\n").words
    (('무선충전기', 'NNG'),)
    """
    found: dict[str, set[tuple[str, ...]]] = {kind: set() for kind in _KINDS}
    for number, line in enumerate(clean(text).split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        kind, *fields = (" ".join(field.split()) for field in line.rstrip("\r").split("\t"))
        entry = _check_line(f"{where} line {number}", kind, [field for field in fields if field])
        found[kind].add(entry)
    return Dictionary(
        words=tuple(sorted((form, tag) for form, tag in found["word"])),
        synonyms=tuple(sorted(found["synonym"])),
        meanings=tuple(sorted(found["means"])),
        variants=tuple(sorted((variant, usual) for variant, usual in found["variant"])),
        stop_words=tuple(sorted(word for (word,) in found["stop"])),
    )


def _check_line(where: str, kind: str, fields: list[str]) -> tuple[str, ...]:
    if kind not in _KINDS:
        raise InputError(f"{where}: found {quote(kind)}, expected a line that begins with {', '.join(_KINDS)} and a tab")
    least, most = _KINDS[kind]
    if not least <= len(fields) <= most:
        raise InputError(
            f"{where}: {kind} has {len(fields)} fields behind it, expected {least if least == most else f'{least} to {most}'}, with tabs"
        )
    long = next((field for field in fields if len(field) > LONGEST), None)
    if long is not None:
        raise InputError(f"{where}: {quote(long)} has {len(long)} characters, the limit is {LONGEST}")
    if kind != "word":
        return tuple(sorted(set(fields))) if kind == "synonym" else tuple(fields)
    tag = fields[1] if len(fields) == 2 else "NNP"
    if tag not in TAGS:
        raise InputError(f"{where}: {quote(tag)} is no part of speech, expected one of {', '.join(TAGS)}")
    return fields[0], tag
