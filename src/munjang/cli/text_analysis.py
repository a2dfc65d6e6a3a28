"""How the commands about texts find Korean words: by which analyser, and with which words of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from munjang.cli.collection import TextCollection
    from munjang.text.dictionary import Dictionary
    from munjang.text.tagging import Tagger

DictionaryOption: TypeAlias = Annotated[
    Path | None, typer.Option("--dictionary", metavar="FILE", help="Your own words, synonyms, spellings and stop words, tab-separated.")
]


@dataclass(frozen=True)
class TextAnalysis:
    """Who finds the nouns of texts."""

    analyser: Annotated[
        Literal["kiwi", "plain", "mecab", "okt", "komoran"] | None,
        typer.Option("--analyser", help="What finds Korean nouns: kiwi, plain rules, or mecab, okt, komoran if installed. Default: kiwi."),
    ] = None
    user_word: Annotated[list[str] | None, typer.Option("--user-word", help="A noun that Kiwi must keep whole; may be repeated.")] = None
    dictionary: DictionaryOption = None

    def tagger(self, read: TextCollection | None = None) -> Tagger:
        """Return what finds nouns in a collection; a library's documents are read with the library's own dictionary."""
        from munjang.text.tagging import choose_tagger

        return choose_tagger(self.analyser, user_words=self.user_word or (), dictionary=self._choose_dictionary(read))

    def _choose_dictionary(self, read: TextCollection | None) -> Dictionary | None:
        from munjang.library.words import read_analysis
        from munjang.text.dictionary import read_dictionary

        if self.dictionary is not None:
            return read_dictionary(self.dictionary)
        return None if read is None or read.settings is None else read_analysis(read.settings.analyser).dictionary
