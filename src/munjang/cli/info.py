"""`munjang info`: what a library is and holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli.library_files import LibraryArgument
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, print_facts, size_text
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.library.results import Info

app = new_app()


@app.command(epilog=examples("munjang info news.db", "munjang info news.db --json"))
def info(library: LibraryArgument, as_json: JsonOption = False) -> None:
    """Show what a library contains and how it was made."""
    from munjang.library.library import Library

    with Library.open(library, create=False) as opened:
        found = opened.info()
    path = Path(library)
    own = path.stat().st_size if path.is_file() else 0
    caches = sum(each.stat().st_size for each in path.with_name(path.name + ".cache").glob("*")) if own else 0
    if as_json:
        emit({**asdict(found), "bytes": own, "cache_bytes": caches})
        return
    print_facts(
        [
            ("library", found.name),
            ("documents", f"{found.documents:,}"),
            ("passages", f"{found.passages:,} of at most {count(found.passage_characters, 'character')}"),
            ("model", f"{model_text(found)}, {found.dimension} dimensions"),
            ("words", _words(found.analyser)),
            *([("dictionary", count(found.dictionary, "entry"))] if found.dictionary else []),
            *([("token vectors", found.token_vectors)] if found.token_vectors else []),
            ("size", f"{size_text(own)}, caches {size_text(caches)}"),
        ]
    )


def model_text(found: Info) -> str:
    """Return what a library says of its model in one line: its name, its fingerprint, and how it computed where that is known."""
    ways = [found.compute, None if found.pooling is None else f"{found.pooling} pooling"]
    return ", ".join((f"{found.model} ({found.fingerprint[:12]})", *(way for way in ways if way)))


def _words(way: str) -> str:
    from munjang.library.words import analyser_of, has_stems

    korean = "morphemes (Kiwi)" if analyser_of(way) == "kiwi" else "words and pairs of characters"
    return korean + (", English as stems" if has_stems(way) else ", English as it is written; munjang reencode gives stems")
