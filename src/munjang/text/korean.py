"""A text → the words by which it can be found: morphemes for Korean, plain words for other scripts.

Korean is split by Kiwi (extra `korean`): particles and endings go, stems stay, so that 달렸다 is found by 달리는. Without Kiwi, Hangul
becomes overlapping pairs of characters, which finds more and less exactly; a note says so once. Han and Kana, which are written without
spaces, always become pairs. An index must be asked with the analyser that made it, so analysers have names.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import compress, islice
from typing import Any, Literal, TypeAlias, cast, get_args

from munjang.errors import MissingExtra, UsageError, quote
from munjang.limits import usable_cores
from munjang.text.dictionary import TAGS
from munjang.text.hangul import FINALS, find_neighbour_keys
from munjang.text.lean_kiwi import LONGEST, LeanKiwi, load_lean_kiwi
from munjang.text.pos_analysers import MARK, PosAnalyser, find_analyser
from munjang.text.unicode import clean

MAX_CHARACTERS = 20_000
"""Characters that are given to Kiwi at once; a longer text is analysed in pieces."""

MAX_INSTANCES = 4
"""Sets of user words for which Kiwi stays loaded; each takes about as much memory as the first."""

SLIP_COST = 1.0
"""What a mistyped letter costs against the words that Kiwi would read otherwise; in a word at most one is."""

_BLOCK = 64  # texts that are given to Kiwi's threads at once
_lock = threading.Lock()


def kiwi_is_installed() -> bool:
    """Return whether the extra `korean` is there."""
    return _look_for_kiwi(find_spec)


@lru_cache(maxsize=1)
def _look_for_kiwi(find: Callable[[str], object]) -> bool:
    """Look once: this is asked for every text, and every look goes through all folders of packages."""
    return find("kiwipiepy") is not None


def tag_with_kiwi(text: str, *, user_words: tuple[str, ...] = ()) -> list[tuple[int, Any]]:
    """Return each token of a cleaned text with the offset of the piece it stands in; its place is offset + token.start."""
    found: list[tuple[int, Any]] = []
    for offset, piece in pieces(text):
        with _lock:  # one analysis at a time; Kiwi's own threads are for lists of texts
            tokens = _choose_kiwi(piece, user_words).tokenize(piece)
        found += [(offset, token) for token in tokens]
    return found


def tag_each_with_kiwi(texts: Iterable[str], *, user_words: tuple[str, ...] = ()) -> Iterator[list[tuple[int, Any]]]:
    """Yield the tokens of each cleaned text, as `tag_with_kiwi` does, analysed in blocks on all cores."""
    waiting = iter(texts)
    while block := list(islice(waiting, _BLOCK)):
        cut = [list(pieces(text)) for text in block]
        with _lock:
            answers = iter(list(_load_kiwi(user_words).tokenize([piece for parts in cut for _, piece in parts])))
        for parts in cut:
            yield [(offset, token) for offset, _ in parts for token in next(answers)]


def split_sentences_with_kiwi(text: str, *, user_words: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """Return where each sentence of a cleaned text starts and ends."""
    places = []
    for offset, piece in pieces(text):
        with _lock:
            found = _load_kiwi(user_words).split_into_sents(piece)
        places += [(offset + sentence.start, offset + sentence.end) for sentence in found]
    return places


def split_each_with_kiwi(
    texts: Iterable[str], *, user_words: tuple[str, ...] = (), keep_names: bool = False
) -> Iterator[list[tuple[int, Any]]]:
    """Yield the sentences of each cleaned text with their tokens and the offset of their piece, analysed in blocks on all cores.

    `keep_names` keeps names of several words whole, as Kiwi does unless it is told otherwise.
    """
    waiting = iter(texts)
    while block := list(islice(waiting, _BLOCK)):
        cut = [list(pieces(text)) for text in block]
        with _lock:
            kiwi = _load_kiwi(user_words, keep_names)
            answers = iter(list(kiwi.split_into_sents([piece for parts in cut for _, piece in parts], return_tokens=True)))
        for parts in cut:
            yield [(offset, sentence) for offset, _ in parts for sentence in next(answers)]


def pieces(text: str, *, longest: int = MAX_CHARACTERS) -> Iterator[tuple[int, str]]:
    """Yield a text in pieces with their offsets, cut at white space where there is some.

    >>> list(pieces("ab cd ef", longest=4))
    [(0, 'ab '), (3, 'cd '), (6, 'ef')]
    """
    start = 0
    while len(text) - start > longest:
        spaces = (at for at in range(start + longest, start, -1) if text[at - 1].isspace())
        end = next(spaces, start + longest)
        yield start, text[start:end]
        start = end
    if start < len(text):
        yield start, text[start:]


def _tidy_word(word: str) -> str:
    form, tab, tag = word.rpartition("\t")
    is_tagged = bool(tab) and tag in TAGS
    return " ".join((form if is_tagged else word).split()) + (f"\t{tag}" if is_tagged else "")


def check_user_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words sorted and once each; refuse what cannot be a word. A tab and a part of speech may stand behind a word."""
    kept = sorted({_tidy_word(word) for word in words})
    wrong = next((word for word in kept if not word or len(word) > 100), None)
    if wrong is not None:
        raise UsageError(f"user word {quote(wrong)} has {len(wrong)} characters, expected 1 to 100")
    return tuple(kept)


@lru_cache(maxsize=MAX_INSTANCES)
def _load_kiwi(user_words: tuple[str, ...], keep_names: bool = False) -> Any:
    global _lean
    if not kiwi_is_installed():
        raise MissingExtra("splitting Korean into morphemes", "korean")
    from kiwipiepy import Kiwi

    _lean = None
    # Without its list of names of several words: 200 MB less, twice as fast to load, and a search for one word of a name finds it.
    kiwi = Kiwi(num_workers=usable_cores(), load_multi_dict=keep_names)
    for word in user_words:
        form, _, tag = word.partition("\t")  # a dictionary's words name their part of speech
        kiwi.add_user_word(form, tag or "NNP", 10.0)
    return kiwi


_lean: LeanKiwi | None = None
"""What reads the first question, until a text comes that needs all names."""


def prepare_for_question(text: str, *, user_words: tuple[str, ...] = ()) -> None:
    """Load what is needed to read this question, unless Kiwi is loaded already; a process that asks once need not load all of it."""
    global _lean
    if user_words or len(text) > LONGEST or not kiwi_is_installed():
        return
    with _lock:
        if _lean is None and not _load_kiwi.cache_info().currsize:
            _lean = load_lean_kiwi(clean(text), workers=usable_cores())


def _choose_kiwi(text: str, user_words: tuple[str, ...], *, mistyped: bool = False) -> Any:
    """Return the Kiwi that reads this text."""
    if _lean is not None and not user_words and _lean.can_read(text, mistyped=mistyped):
        return _lean.kiwi
    return _load_kiwi(user_words)


Analyser: TypeAlias = Literal["kiwi", "bigrams"]

_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_RUNS = re.compile(rf"[{_HANGUL}]+|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\W_{_HANGUL}\u3040-\u30ff\u3400-\u9fff]+")
_KOREAN = re.compile(f"[{_HANGUL}]")
_PAIRED = re.compile(f"[{_HANGUL}\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_MEANINGFUL = ("NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "MM", "MAG", "XR", "SL", "SN", "SH", "W_")


def is_content_tag(tag: str) -> bool:
    """Say whether words with this tag (Sejong's) are looked for: nouns, stems, modifiers, foreign words, numbers."""
    return tag.startswith(_MEANINGFUL)


class KoreanNote(UserWarning):
    """Korean is split into pairs of characters because Kiwi is not installed."""


def morphemes(text: str, *, analyser: str | None = None, user_words: tuple[str, ...] = ()) -> list[str]:
    """Return the words of a text in their order, in lower case; with no analyser named, the best there is. Kiwi keeps `user_words` whole.

    >>> morphemes("It is RAINING 눈이", analyser="bigrams")
    ['it', 'is', 'raining', '눈이']
    """
    return [word for word, _ in tag_morphemes(text, analyser=analyser, user_words=user_words)]


def tag_morphemes(text: str, *, analyser: str | None = None, user_words: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return the same words, each with its tag (Sejong's, by Kiwi); a word that no analyser has read has the tag "".

    >>> tag_morphemes("It is 눈이", analyser="bigrams")
    [('it', ''), ('is', ''), ('눈이', '')]
    """
    text = clean(text)
    split = split_by(analyser or choose_analyser(noted=has_hangul(text)), user_words=user_words)
    return [word for start in range(0, len(text), MAX_CHARACTERS) for word in split(text[start : start + MAX_CHARACTERS])]


def tag_many_morphemes(texts: Iterable[str], *, analyser: str, user_words: tuple[str, ...] = ()) -> Iterator[list[tuple[str, str]]]:
    """Yield the words of each text with their tags, as `tag_morphemes` does; Kiwi reads on all cores."""
    if analyser != "kiwi":
        yield from (tag_morphemes(text, analyser=analyser) for text in texts)
        return
    split_by(analyser)  # refuses what is not installed
    waiting = map(clean, texts)
    while block := list(islice(waiting, _BLOCK)):
        is_korean = [has_hangul(text) and len(text) <= MAX_CHARACTERS for text in block]  # longer ones are cut, by tag_morphemes
        together = tag_each_with_kiwi(compress(block, is_korean), user_words=user_words)
        for text, korean in zip(block, is_korean, strict=True):
            alone = partial(tag_morphemes, text, analyser=analyser, user_words=user_words)
            yield _keep_words(token for _, token in next(together)) if korean else alone()


def has_hangul(text: str) -> bool:
    """Return whether a text holds any Hangul."""
    return _KOREAN.search(text) is not None


def note_missing_kiwi() -> None:
    """Say once that Korean is split by rules because Kiwi is not installed."""
    _warn_once()


def choose_analyser(*, noted: bool = False) -> Analyser:
    """Return "kiwi" if it is installed, otherwise "bigrams", with a note if wanted."""
    if kiwi_is_installed():
        return "kiwi"
    if noted:
        _warn_once()
    return "bigrams"


def split_by(analyser: str, *, user_words: tuple[str, ...] = ()) -> Callable[[str], list[tuple[str, str]]]:
    """Return the function of an analyser; refuse one that is unknown or not installed. `user_words` are for Kiwi.

    Besides Kiwi and pairs of characters, there are analysers with a `pos` method (`pos_analysers`), by their names in files.
    """
    if analyser.startswith(MARK):
        return partial(_split_by_pos, find_analyser(analyser))
    if analyser not in get_args(Analyser):
        raise UsageError(f"the analyser {quote(analyser)} is unknown, expected one of {', '.join(get_args(Analyser))}")
    if analyser == "bigrams":
        return _split_plainly
    if not kiwi_is_installed():
        raise MissingExtra("splitting Korean into morphemes", "korean")
    return partial(_split_by_kiwi, user_words=user_words)


def _split_plainly(text: str) -> list[tuple[str, str]]:
    runs = _RUNS.findall(text.casefold())
    return [(word, "") for run in runs for word in (_make_bigrams(run) if _PAIRED.match(run) else [run])]


def _make_bigrams(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _split_by_kiwi(text: str, user_words: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    if not has_hangul(text):
        return _split_plainly(text)
    return _keep_words(token for _, token in tag_with_kiwi(text, user_words=user_words))


def _keep_words(tokens: Iterable[Any]) -> list[tuple[str, str]]:
    return _keep_content((cast("str", token.form), cast("str", token.tag)) for token in tokens)


def _keep_content(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    kept = [(form, tag) for form, tag in pairs if form and is_content_tag(tag)]
    return [word for form, tag in kept for word in ([(form, tag)] if _KOREAN.match(form) else _split_plainly(form))]


def _split_by_pos(analyser: PosAnalyser, text: str) -> list[tuple[str, str]]:
    from munjang.text.tagging import to_sejong_tag  # which reads this module

    if not has_hangul(text):
        return _split_plainly(text)
    with _lock:  # such objects rarely say that several threads may use them
        pairs = [(str(form), to_sejong_tag(str(tag))) for form, tag in analyser.pos(text)]
    return _keep_content(pairs)


def space_with_kiwi(text: str, *, user_words: tuple[str, ...] = ()) -> str:
    """Return a text with spaces where Kiwi would write them."""
    with _lock:
        return cast("str", _load_kiwi(user_words).space(text))


def tag_mistyped_with_kiwi(text: str, *, user_words: tuple[str, ...] = ()) -> list[Any]:
    """Return the tokens of a short text as it was meant: Kiwi may take one letter in a word for that of a neighbouring key."""
    with _lock:
        return list(_choose_kiwi(text, user_words, mistyped=True).tokenize(text, typos=_load_slips(), typo_cost_threshold=SLIP_COST))


def join_with_kiwi(tokens: Sequence[Any]) -> str:
    """Return the text of tokens."""
    pairs = [(token.form, token.tag) for token in tokens]  # a token itself crashes a Kiwi with other user words than made it
    with _lock:
        return cast("str", (_load_kiwi(()) if _lean is None else _lean.kiwi).join(pairs))


@lru_cache(maxsize=1)
def _load_slips() -> Any:
    """Return what Kiwi knows of slips of the finger; final consonants are written with a backslash there."""
    from kiwipiepy import TypoDefinition, TypoTransformer

    pairs = [(key, other) for key, others in find_neighbour_keys().items() for other in others]
    finals = [(f"\\{key}", f"\\{other}") for key, other in pairs if key in FINALS and other in FINALS]
    return TypoTransformer([TypoDefinition([key], [other], SLIP_COST) for key, other in (*pairs, *finals)])


@lru_cache(maxsize=1)
def _warn_once() -> None:
    message = "Korean is split by plain rules and pairs of characters: Kiwi is not installed (pip install 'munjang[korean]')"
    warnings.warn(message, KoreanNote, stacklevel=4)
