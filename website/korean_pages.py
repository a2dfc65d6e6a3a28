"""A hook of mkdocs: pages under ko/ say that they are Korean, so that browsers and screen readers know."""

from __future__ import annotations

from typing import Any


def on_post_page(output: str, *, page: Any, **_rest: Any) -> str:
    """Called by mkdocs with every page's HTML."""
    return in_its_language(output, page.file.src_uri)


def in_its_language(html: str, place: str) -> str:
    """Return the HTML with the language that the page is written in.

    >>> in_its_language('<html lang="en" class="no-js">', "ko/index.md")
    '<html lang="ko" class="no-js">'
    """
    return html.replace('<html lang="en"', '<html lang="ko"', 1) if place.startswith("ko/") else html
