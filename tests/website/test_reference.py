"""docs/reference says what the code says."""

from __future__ import annotations

import inspect

import pytest
from tests.website.conftest import ROOT
from website.reference.markdown import documented, table
from website.reference.signatures import signature

FOLDER = ROOT / "docs/reference"
NAMES = ("cli.md", "formats.md", "http.md", "python.md", "recipes.md")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    for package in ("torch", "accelerate", "starlette", "pydantic", "orjson"):
        pytest.importorskip(package, reason=f"{package}, without which the reference cannot be made, is not installed")
    from website.reference.pages import all_pages

    return all_pages()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_up_to_date(name: str, pages: dict[str, str]) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages[name], "python -m website.reference writes it anew"


def test_there_is_no_page_that_is_not_made(pages: dict[str, str]) -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(pages) == list(NAMES)


def test_no_path_of_this_machine_is_in_a_page(pages: dict[str, str]) -> None:
    assert not any(str(ROOT) in text or "/home/" in text for text in pages.values())


def test_a_signature_reads_as_it_is_written() -> None:
    def sample(self: object, texts: list[str], /, mode: str = "a", *, k: int = 3, **rest: object) -> int:
        return 0

    written = "sample(texts: list[str], /, mode: str = 'a', *, k: int = 3, **rest: object) -> int"
    assert signature("sample", sample, bound=True) == written
    assert signature("sample", sample).startswith("sample(self: object, texts")
    assert inspect.signature(sample)  # the authority takes the same function


def test_a_bar_in_a_cell_does_not_make_a_column() -> None:
    assert table(("a",), [("x | y",)]).splitlines()[-1] == "| x \\| y |"


def test_arguments_of_a_docstring_become_a_list() -> None:
    def sample() -> None:
        """Do it.

        Args:
            path: the file; its suffix
                says the format.
            k: how many.
        """

    assert documented(sample) == "Do it.\n\n- `path`: the file; its suffix says the format.\n- `k`: how many.\n"
