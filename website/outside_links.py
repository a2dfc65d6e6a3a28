"""A hook of mkdocs: a link to a file of the repository that is no page of the site becomes the file's name."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_rest: Any) -> str:
    """Called by mkdocs with every page's text."""
    return inside_only(markdown, page.file.src_uri)


def inside_only(markdown: str, place: str) -> str:
    """Return a page's text with links out of the documentation made plain.

    >>> inside_only("[the recipe](../recipes/a.md), [training](train.md)", "results.md")
    'the recipe (`recipes/a.md` in the repository), [training](train.md)'
    """

    def plain(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(place), found[2]))
        return found[0] if path.startswith("docs/") else f"{found[1]} (`{path}` in the repository)"

    return _LINK.sub(plain, markdown)
