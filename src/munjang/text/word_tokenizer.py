"""Texts → numbers of words, split at spaces: the tokenizer of sentence-transformers' `WordEmbeddings` and `BoW`.

A word that the list does not have is looked for again without punctuation around it, then in lower case, and is passed over if it is not
found. Stop words are passed over too.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from munjang.errors import FolderError
from munjang.limits import LIMITS, Limits
from munjang.text.tokenizer import Inspected, PairFrame, Tokenizer

WORDS_FILE = "whitespacetokenizer_config.json"
"""What sentence-transformers calls the list of words of a `WordEmbeddings`."""


def read_words(path: Path, *, limits: Limits = LIMITS) -> tuple[list[str], dict[str, Any]]:
    """Return the words of the list "vocab" and all settings that stand beside it."""
    try:
        if path.stat().st_size > limits.max_tokenizer_bytes:
            raise FolderError(f"{path}: larger than {limits.max_tokenizer_bytes:,} bytes, too large for a list of words")
        config = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise FolderError(f"{path}: not JSON; damaged") from None
    words = config.get("vocab") if isinstance(config, dict) else None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise FolderError(f"{path}: expected a list of words under 'vocab'")
    return words, config


def load_word_tokenizer(path: Path, *, is_bag: bool, limits: Limits = LIMITS) -> WordTokenizer:
    """Load a list of words. A bag of words has nothing beside it and each word once, `WordEmbeddings` have stop words and a case."""
    words, config = read_words(path, limits=limits)
    if is_bag:
        return WordTokenizer(list(dict.fromkeys(words)), [], lowercase=False, limits=limits)
    if len(set(words)) < len(words):
        raise FolderError(f"{path}: 'vocab' has a word twice, so the rows of its vectors are not certain")
    stops, lowercase = config.get("stop_words"), config.get("do_lower_case", False)
    if not isinstance(stops, list) or not all(isinstance(word, str) for word in stops) or not isinstance(lowercase, bool):
        raise FolderError(f"{path}: 'stop_words' must be a list of words, 'do_lower_case' true or false")
    return WordTokenizer(words, stops, lowercase=lowercase, limits=limits)


class WordTokenizer(Tokenizer):
    """Turns texts into numbers of words; it has no special tokens."""

    def __init__(self, words: Sequence[str], stops: Iterable[str], *, lowercase: bool, limits: Limits = LIMITS) -> None:
        self._limits, self._words, self._stops, self._lowercase = limits, list(words), frozenset(stops), lowercase
        self._numbers = {word: number for number, word in enumerate(self._words)}
        self.special_ids = frozenset()
        self.vocabulary_size, self.highest_id, self.max_length = len(self._words), len(self._words) - 1, None
        self.pad_id = self.pad_type_id = 0
        self.cls_id = self.sep_id = self.mask_id = self.unk_id = None
        self._pair = PairFrame([], [], [], ([], 0, [], 0, []))
        self._before, self._after = [], []

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of each text's words."""
        return [[number for number, _ in self._find_words(self._prepare(text))] for text in texts]

    def encode_plain(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the same: there are no special tokens."""
        return self.encode(texts)

    def encode_with_offsets(self, text: str) -> Inspected:
        """Return one text's numbers, words and where they stand."""
        found = list(self._find_words(self._prepare(text)))
        ids = [number for number, _ in found]
        return Inspected(ids, self.tokens(ids), [place for _, place in found], [0] * len(ids))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the word of each number."""
        return [self._words[number] if 0 <= number < len(self._words) else "" for number in ids]

    def find_id(self, token: str) -> int | None:
        """Return the number of a word."""
        return self._numbers.get(token)

    def save(self, folder: Path, *, max_length: int | None = None) -> None:  # noqa: ARG002 (one signature for all tokenizers)
        """Write the file that sentence-transformers reads."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        config = {"vocab": self._words, "stop_words": sorted(self._stops), "do_lower_case": self._lowercase}
        (Path(folder) / WORDS_FILE).write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")

    def _find_words(self, text: str) -> Iterator[tuple[int, tuple[int, int]]]:
        for match in re.finditer(r"\S+", text):
            found = self._find_word(match[0].lower() if self._lowercase else match[0])
            if found is not None:
                number, before, length = found
                yield number, (match.start() + before, match.start() + before + length)

    def _find_word(self, token: str) -> tuple[int, int, int] | None:
        """Return a word's number, how many characters stand before it, and its length; None for one that is passed over."""
        bare = token.strip(string.punctuation)
        before = len(token) - len(token.lstrip(string.punctuation))
        for form, at in ((token, 0), (bare, before), (bare.lower(), before)):
            if form in self._stops:
                return None
            if form in self._numbers:
                return self._numbers[form], at, len(form)
        return None
