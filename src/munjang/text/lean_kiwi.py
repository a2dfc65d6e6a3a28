"""Kiwi for the first question of a process, in about half the time: without the names that cannot stand in that question.

Most of what Kiwi reads when it is loaded are 113,000 names of people, places and things (`default.dict`). A name can be found in a text
only if its letters are those of the text. So a folder is made that has all files of Kiwi's model and, of the names, those made of the
question's letters, and of those that one slip of the finger makes of them; Kiwi itself then loads this folder as it would its own, and its
answers for such a text are the same. A text with other letters needs all names.

Which syllables count is generous: a final consonant can belong to the next morpheme, so syllables that differ by it alone count as one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from munjang.text.hangul import FINALS, is_syllable, join_syllable, list_slips, split_syllable

LONGEST = 200
"""Characters of a question for which names are chosen; a longer one has most letters."""

NAMES = "default.dict"


@dataclass(frozen=True)
class LeanKiwi:
    """A Kiwi, and the letters of the texts that it reads as Kiwi would with all names."""

    kiwi: Any
    letters: frozenset[str]
    slips: frozenset[str]
    """Letters that one slip of the finger makes of them."""

    def can_read(self, text: str, *, mistyped: bool = False) -> bool:
        """Say whether this text can hold no other names; `mistyped` is whether it is read as if it held slips."""
        others = set(text) - self.letters
        return not others if mistyped else self.slips.issuperset(others)


def load_lean_kiwi(text: str, *, workers: int) -> LeanKiwi | None:
    """Load Kiwi with the names that can stand in the text; None where its files are not as expected."""
    from kiwipiepy import Kiwi

    letters = frozenset(text) | {" "}
    slips = frozenset(_list_slips(letters))
    try:
        from kiwipiepy_model import get_model_path

        model = Path(get_model_path())
        names = choose_names((model / NAMES).read_text(encoding="utf-8"), letters)
        with TemporaryDirectory(prefix="munjang-kiwi-") as folder:
            for file in model.iterdir():
                if file.is_file() and file.name != NAMES:
                    (Path(folder) / file.name).symlink_to(file)
            (Path(folder) / NAMES).write_text(names, encoding="utf-8")
            return LeanKiwi(Kiwi(num_workers=workers, model_path=folder, load_multi_dict=False), letters, slips)
    except (ImportError, OSError):
        return None


def choose_names(dictionary: str, letters: Iterable[str]) -> str:
    r"""Return the lines of Kiwi's dictionary whose names are made of these letters, and all that are no names.

    >>> choose_names("강릉\tNNP\t-9\n가르\tNNP\t-9\n서울\tNNP\t-9\n댔\t다/EC + 하/VV\n", "강릉")
    '강릉\tNNP\t-9\n가르\tNNP\t-9\n댔\t다/EC + 하/VV\n'
    """
    own, slips = _list_letters(letters), "".join(sorted(set(map(_take_all_finals, _list_slips(letters)))))
    name = rf"[{own}]*[{own}{slips}][{own}]*\t[A-Z][^/\n]*\n"
    return "".join(re.findall(rf"(?m)^(?:{name}|[^/\n]*/[^\n]*\n)", dictionary))


def _list_slips(letters: Iterable[str]) -> Iterator[str]:
    return (slip for letter in letters if is_syllable(letter) for slip in list_slips(letter))


def _list_letters(letters: Iterable[str]) -> str:
    """Return what the letters of a text may be in a name, as a part of a regular expression."""
    found: dict[str, None] = {}
    for letter in letters:
        if is_syllable(letter):
            found[_take_all_finals(letter)] = None
        else:
            spellings = {letter, letter.lower(), letter.upper(), unicodedata.normalize("NFKC", letter)}
            found |= dict.fromkeys(re.escape(each) for each in sorted(set("".join(spellings))))
    return "".join(found) or " "


def _take_all_finals(syllable: str) -> str:
    """Return the range of syllables that differ from this one by their final consonant alone."""
    initial, vowel, _ = split_syllable(syllable)
    return f"{join_syllable(initial, vowel, FINALS[0])}-{join_syllable(initial, vowel, FINALS[-1])}"
