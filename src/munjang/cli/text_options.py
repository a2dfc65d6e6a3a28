"""The options of commands that look into texts: who splits Korean, and which words stay whole."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

AnalyserOption: TypeAlias = Annotated[
    Literal["kiwi", "plain"] | None,
    typer.Option("--analyser", help="Who finds Korean nouns: kiwi, or plain rules; without it, kiwi where it is installed."),
]
UserWordOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--user-word", help="A noun that Kiwi shall keep whole; may be given again.")
]
