"""The options that commands share, so that one word means one thing everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from munjang.types import Language


def _model_names(incomplete: str) -> list[str]:
    """Return the models whose name begins so, for a shell that completes."""
    from munjang.models.registry import list_models

    return [found.name for found in list_models() if found.name.startswith(incomplete)]


ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A model's name or folder; without it, the default model.", autocompletion=_model_names),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
OutputOption: TypeAlias = Annotated[Path | None, typer.Option("--output", "-o", help="Write the result to this file.")]
ComputeOption: TypeAlias = Annotated[
    Literal["float32", "int8"], typer.Option("--compute", help="How the model computes; int8 is faster for a small loss.")
]
LanguageOption: TypeAlias = Annotated[
    Language | None, typer.Option("--language", help="The report's language; without it Korean under a Korean locale, else English.")
]
TextColumnOption: TypeAlias = Annotated[str | None, typer.Option("--text-column", help="The column that holds the text.")]
TextsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="FILE", help='txt, csv, tsv, jsonl, json or parquet, also gzipped; "-" is standard input; or a library.'),
]
FormatOption: TypeAlias = Annotated[
    Literal["txt", "csv", "tsv", "jsonl", "json", "parquet"] | None,
    typer.Option("--format", help="The input's format, when its name does not say it."),
]
_KOREAN = re.compile("ko(rean)?(?![a-z])", re.IGNORECASE)  # ko, ko_KR.UTF-8, Korean_Korea.949; not kok_IN, which is Konkani
UTF8 = "utf-8-sig"
"""UTF-8, with or without a byte order mark."""
EncodingOption: TypeAlias = Annotated[str, typer.Option("--encoding", help="The input's encoding, such as cp949.")]
NoQuotingOption: TypeAlias = Annotated[bool, typer.Option("--no-quoting", help="Double quotes in CSV are ordinary characters.")]


def report_language(chosen: Language | None, *, environment: Mapping[str, str] = os.environ) -> Language:
    """Return the language of a report: the chosen one, else that of the locale, which the first of three variables that is set names.

    >>> report_language(None, environment={"LC_ALL": "", "LANG": "ko_KR.UTF-8"})
    'ko'
    """
    locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environment.get(name))), "")
    return chosen or ("ko" if _KOREAN.match(locale) else "en")


def new_app() -> typer.Typer:
    """Return an empty command in the house style."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def examples(*lines: str) -> str:
    r"""Return the end of a help page: examples, each on its own line.

    >>> examples("munjang demo")
    '\x08\nExample:\n  munjang demo'
    """
    return "\b\n" + ("Example" if len(lines) == 1 else "Examples") + ":\n" + "\n".join(f"  {line}" for line in lines)
