"""Blocks become sections: nothing is lost, none reaches over a heading, tiny pieces join."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from munjang.documents.blocks import FileBlock, ParsedFile
from munjang.documents.read import SEPARATOR, TINY, make_sections

blocks = st.lists(
    st.builds(
        FileBlock,
        st.sampled_from(["heading", "paragraph", "item", "row"]),
        st.text("가나다 abc.", min_size=1, max_size=200).map(lambda text: f"x{text}x"),
        st.integers(1, 4),
        st.integers(1, 3),
    ),
    max_size=30,
)


@given(blocks, st.integers(50, 500))
def test_every_block_stands_in_its_order_where_its_section_says(made: list[FileBlock], characters: int) -> None:
    sections = make_sections(ParsedFile(tuple(made)), characters=characters)
    whole = SEPARATOR.join(section.text for section in sections)
    assert all(whole[section.start : section.stop] == section.text for section in sections)
    at = 0
    for block in made:
        at = whole.index(block.text, at) + len(block.text)


@given(blocks)
def test_a_section_goes_over_a_heading_only_if_what_stands_before_is_tiny(made: list[FileBlock]) -> None:
    for section in make_sections(ParsedFile(tuple(made)), characters=400):
        headings = [block.text for block in made if block.kind == "heading" and block.text in section.text]
        last = max((section.text.rfind(text) for text in headings), default=0)
        assert last <= TINY + 2 * len(headings) + 2 or len(section.text) <= 400


def test_a_further_page_is_noted_where_it_begins() -> None:
    parsed = ParsedFile(
        (FileBlock("heading", "Roads", 1, 3), FileBlock("paragraph", "a" * 100, 0, 3), FileBlock("paragraph", "b" * 50, 0, 4))
    )
    [section] = make_sections(parsed)
    assert section.facts() == {"page": 3, "pages": [[109, 4]], "heading": "Roads", "start": 0, "stop": 159}
    assert section.text[109] == "b"


def test_slides_are_never_joined() -> None:
    parsed = ParsedFile((FileBlock("paragraph", "one", 0, 1), FileBlock("paragraph", "two", 0, 2)), "slide")
    assert [section.place for section in make_sections(parsed)] == [1, 2]
