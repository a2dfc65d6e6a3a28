"""Marked-up documents: nothing that people read is lost, nothing that they do not is read, and rows have the right headers."""

from __future__ import annotations

import io
import unicodedata
import zipfile
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.conftest import FIXTURES, need_parsers
from tests.documents.fixtures.write_hwp5 import write_hwp5

from munjang.documents.blocks import FORMATS, DocumentError, FileBlock, find_document_format
from munjang.documents.parse_html import decode_text, parse_email, parse_html
from munjang.documents.reader_process import parse_bytes
from munjang.documents.tables import TableCell, make_rows


def read(name: str) -> list[FileBlock]:
    path = FIXTURES / name
    format = find_document_format(path)
    assert format is not None
    if format.package is not None:
        need_parsers()
    return list(parse_bytes(path.read_bytes(), format).blocks)


def html(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in parse_html(text.encode()).blocks]


@pytest.mark.parametrize("suffix", ["odt", "docx", "html", "epub", "pdf"])
def test_what_stands_around_a_box_a_note_and_a_break_stays_one_sentence(suffix: str) -> None:
    texts = [block.text for block in read(f"notes.{suffix}")]
    assert any("상자 앞의 말 상자 뒤의 말." in text for text in texts)
    if suffix != "html":  # LibreOffice writes the box as a picture
        assert sum("글상자 안의 말이다" in text for text in texts) == 1
    assert any("각주의 내용이다." in text for text in texts)
    assert any("여러 칸 뒤의 말. 고리 글 뒤." in text for text in texts)
    assert any(text.startswith("왼쪽 단의 글이 먼저 오고 길게 이어지며 다음 단으로 넘어간다. 왼쪽 단의 글이") for text in texts)


@pytest.mark.parametrize("suffix", ["odt", "docx"])
def test_deleted_text_comments_headers_and_marks_are_left_out(suffix: str) -> None:
    blocks = read(f"notes.{suffix}")
    whole = " ".join(block.text for block in blocks)
    assert not [word for word in ("지워진글", "댓글의 말", "머리말글", "꼬리말글", "[^") if word in whole]
    assert [(block.level, block.text) for block in blocks if block.kind == "heading"] == [
        (1, "첫째 장의 제목"),
        (2, "목록과 표"),
        (1, "둘째 장의 제목"),
        (3, "건너뛴 단계의 제목"),
    ]
    assert [block.text for block in blocks if block.kind == "item"] == ["항목 하나", "속항목 하나의 하나", "속항목 하나의 둘", "항목 둘"]
    assert [block.text for block in blocks if block.kind == "row"] == [
        "구분: 수입 · 금액: 회비 · 금액: 300 둘째문단칸",
        "구분: 수입 · 금액: 찬조 · 금액: 120",
        "구분: 지출 · 금액: 속표가 · 속표나 다음",
    ]


def test_every_kind_of_text_of_a_page_is_read_in_its_order() -> None:
    page = (
        "<title>skipped</title><script>skipped</script><nav>skipped</nav><h1>T</h1>bare<div>in div<p>in p<p>next p</div><blockquote>quote"
        "</blockquote><dl><dt>term<dd>meaning</dl><ul><li>a<ul><li>b</ul><li>c</ul><p>line<br>break</p><pre>two\n  lines</pre>"
        "<p hidden>skipped</p><p style='display: none'>skipped</p><details><summary>s</summary>d</details><a>x</a><b>y</b> z"
    )
    assert html(page) == [
        ("heading", "T"),
        *(("paragraph", text) for text in ("bare", "in div", "in p", "next p", "quote", "term", "meaning")),
        *(("item", text) for text in "abc"),
        *(("paragraph", text) for text in ("line break", "two\n  lines", "s", "d", "xy z")),
    ]


def test_tables_that_lay_out_a_page_are_what_stands_in_them() -> None:
    inner = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    assert html(f"<table><tr><td><h2>Head</h2><td>side</table><table><tr><td>{inner}<td></table>") == [
        ("heading", "Head"),
        ("paragraph", "side"),
        ("row", "a: 1 · b: 2"),
    ]
    assert html("<table><tr><td>one<tr><td>two</table>") == [("paragraph", "one"), ("paragraph", "two")]
    assert html("<table><tr><th>name<td>Kim<tr><th>age<td>30</table>") == [("row", "name: Kim"), ("row", "age: 30")]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<meta charset=euc-kr>똠방각하 펲시".encode("cp949"), "똠방각하 펲시"),
        ("옛 문서".encode("cp949"), "옛 문서"),
        ("<meta charset=utf-16>가".encode(), "가"),
        ("\ufeff가".encode("utf-16-be"), "가"),
        ("\ufeff가".encode(), "가"),
        ("<meta charset=shift_jis>日本".encode("shift_jis"), "日本"),
        ("<meta charset=nonsense>가".encode(), "가"),
        ("<meta charset=zip>가".encode(), "가"),
        (("가" * 200).encode()[:-1], "가" * 199 + "\ufffd"),
    ],
    ids=["euc-kr", "cp949 unsaid", "says utf-16", "utf-16", "mark", "shift_jis", "unknown", "no text", "cut off"],
)
def test_pages_are_decoded_as_they_are_and_not_only_as_they_say(raw: bytes, text: str) -> None:
    assert decode_text(raw).rpartition(">")[2] == text


def test_a_text_in_no_known_encoding_is_refused() -> None:
    with pytest.raises(DocumentError, match="neither UTF-8 nor CP949"):
        decode_text(bytes(range(128, 256)) * 20)


def test_a_message_has_its_names_its_text_and_what_is_attached() -> None:
    message = EmailMessage()
    message["Subject"], message["To"] = "회의록", "마을 회관 <hall@example.org>"
    message.set_content("첫 줄\n\n둘째 문단", charset="euc-kr")
    message.add_attachment("쪽지의 글".encode(), maintype="text", subtype="plain", filename="쪽지.txt")
    message.add_attachment((FIXTURES / "report.html").read_bytes(), maintype="text", subtype="html", filename="report.html")
    message.add_attachment(b"\0" * 9, maintype="application", subtype="zip", filename="x.zip")
    parsed = parse_email(message.as_bytes(), lambda name, raw: parse_html(raw) if name == "report.html" else None)
    assert [block.text for block in parsed.blocks[:7]] == [
        "Subject: 회의록\nTo: 마을 회관 <hall@example.org>",
        "첫 줄",
        "둘째 문단",
        "쪽지.txt",
        "쪽지의 글",
        "report.html",
        "겨울 보고서",
    ]
    assert [block.level for block in parsed.blocks if block.text in ("report.html", "겨울 보고서")] == [1, 2]


def test_captions_merged_headers_and_empty_columns_lose_nothing() -> None:
    table = [
        [TableCell("판매 보고", columns=3)],
        [TableCell("구분", rows=2), TableCell("금액", columns=2)],
        [TableCell("들어옴"), TableCell("나감")],
        [TableCell("회비"), TableCell("3"), TableCell("")],
    ]
    assert [(block.kind, block.text) for block in make_rows(table)] == [
        ("paragraph", "판매 보고"),
        ("row", "금액 나감"),
        ("row", "구분: 회비 · 금액 들어옴: 3"),
    ]


cells = st.builds(TableCell, st.sampled_from(["", "가", "나", "다라", "x y"]), st.integers(0, 4), st.integers(0, 4), st.booleans())


@given(st.lists(st.lists(cells, max_size=5), max_size=6))
def test_no_text_of_a_table_is_lost(table: list[list[TableCell]]) -> None:
    made = " ".join(block.text for block in make_rows(table))
    assert all(cell.text in made for row in table for cell in row if cell.rows or row is table[0])


def zip_of(**members: str) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return output.getvalue()


def test_hwpx_keeps_the_text_behind_a_box_in_a_paragraph() -> None:
    section = (
        '<s xmlns:hp="hp"><hp:p paraPrIDRef="7"><hp:run><hp:t>제목</hp:t></hp:run></hp:p><hp:p><hp:run><hp:t>앞</hp:t><hp:rect>'
        "<hp:drawText><hp:subList><hp:p><hp:run><hp:t>상자</hp:t></hp:run></hp:p></hp:subList></hp:drawText></hp:rect>"
        "<hp:t>뒤<hp:tab/>끝</hp:t></hp:run></hp:p></s>"
    )
    header = '<h xmlns:hh="hh"><hh:paraPr id="7"><hh:heading type="OUTLINE" level="1"/></hh:paraPr></h>'
    blocks = parse_bytes(zip_of(Contents__section0=section, Contents__header=header), FORMATS[".hwpx"]).blocks
    assert [(block.kind, block.level, block.text) for block in blocks] == [
        ("heading", 2, "제목"),
        ("paragraph", 0, "앞뒤 끝"),
        ("paragraph", 0, "상자"),
    ]


def test_a_locked_copy_of_hwp_and_encrypted_office_files_are_named() -> None:
    with pytest.raises(DocumentError, match="format of before 2007"):
        parse_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(100), FORMATS[".docx"])
    encrypted = zip_of(**{"META-INF__manifest": "<m><encryption-data/></m>", "content": "x"})
    with pytest.raises(DocumentError, match="is encrypted"):
        parse_bytes(encrypted, FORMATS[".odt"])
    need_parsers()
    with pytest.raises(DocumentError, match="배포용"):
        parse_bytes(write_hwp5([("p", "상위 버전의 배포용 문서입니다")], is_distribution=True), FORMATS[".hwp"])


def test_composed_and_decomposed_text_are_the_same() -> None:
    text = "<p>한글 각각</p>"
    assert parse_html(unicodedata.normalize("NFD", text).encode()) == parse_html(text.encode())
