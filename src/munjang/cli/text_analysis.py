"""How the commands about texts find Korean words: by which analyser, and with which words of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from munjang.text.tagging import Tagger

DictionaryOption: TypeAlias = Annotated[
    Path | None, typer.Option("--dictionary", metavar="FILE", help="Your own words, synonyms, spellings and stop words, tab-separated.")
]


@dataclass(frozen=True)
class TextAnalysis:
    """Who finds the nouns of texts."""

    analyser: Annotated[
        Literal["kiwi", "plain"] | None,
        typer.Option("--analyser", help="What finds Korean nouns: kiwi or plain rules. Default: kiwi if installed."),
    ] = None
    user_word: Annotated[list[str] | None, typer.Option("--user-word", help="A noun that Kiwi must keep whole; may be repeated.")] = None
    dictionary: DictionaryOption = None

    def tagger(self) -> Tagger:
        """Return what finds nouns."""
        from munjang.text.dictionary import read_dictionary
        from munjang.text.tagging import choose_tagger

        own = () if self.dictionary is None else read_dictionary(self.dictionary).user_words
        return choose_tagger(self.analyser, user_words=(*(self.user_word or ()), *own))
