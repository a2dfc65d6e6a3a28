"""Every page of the reference: its file name → its text."""

from __future__ import annotations

from website.reference import command_line, file_formats, http_interface, python_names, recipe_keys

NOTE = "<!-- Made by `python -m website.reference` from the code; do not edit. -->\n\n"


def all_pages() -> dict[str, str]:
    """Return all pages; the same code always gives the same text."""
    made = {
        "cli.md": command_line.page(),
        "python.md": python_names.page(),
        "http.md": http_interface.page(),
        "recipes.md": recipe_keys.page(),
        "formats.md": file_formats.page(),
    }
    return {name: NOTE + text.rstrip("\n") + "\n" for name, text in made.items()}
