from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from munjang.errors import InputError, MissingExtra, UsageError
from munjang.limits import LIMITS
from munjang.text import readers
from munjang.text.readers import find_format, read_rows, read_texts
from munjang.text.records import BadLines

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        raw = data.encode() if isinstance(data, str) else data
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


def values(path, **options):
    return [row.values for row in read_rows(path, **options)]


SAME = {
    "a.csv": 'id,text\r\n1,비가 온다\r\n2,"눈, ""펑펑"""\r\n',
    "a.tsv": 'id\ttext\n1\t비가 온다\n2\t눈, "펑펑"\n',
    "a.jsonl": '{"id": "1", "text": "비가 온다"}\n\n{"id": "2", "text": "눈, \\"펑펑\\""}\n',
    "a.ndjson": '{"id": "1", "text": "비가 온다"}\n{"id": "2", "text": "눈, \\"펑펑\\""}',
    "a.json": '[\n {"id": "1", "text": "비가 온다"},\n {"id": "2", "text": "눈, \\"펑펑\\""}\n]\n',
}


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", SAME)
def test_every_format_gives_the_same_records(write, name, packed):
    found = list(read_texts(write(name + packed, SAME[name])))
    assert [(record.id, record.text, record.metadata) for record in found] == [("1", "비가 온다", {}), ("2", '눈, "펑펑"', {})]


@pytest.mark.parametrize("name", SAME)
def test_a_byte_order_mark_is_dropped(write, name):
    assert values(write(name, b"\xef\xbb\xbf" + SAME[name].encode()))[0] == {"id": "1", "text": "비가 온다"}


def test_parquet_gives_the_same_records(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": list(range(3_000)), "text": [f"글 {n}" for n in range(3_000)], "year": [2024] * 3_000})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = list(read_texts(tmp_path / "a.parquet"))
    assert (len(found), found[2_999].id, found[2_999].text, found[2_999].metadata) == (3_000, "2999", "글 2999", {"year": 2024})
    assert found[2_999].where == "a.parquet line 3000"
    assert values(tmp_path / "a.parquet", columns=["year"])[0] == {"year": 2024}
    with pytest.raises(InputError, match="no column 'yaer', found 'id', 'text', 'year'; did you mean 'year'"):
        values(tmp_path / "a.parquet", columns=["yaer"])
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match="b.parquet: not a whole Parquet file"):
        values(tmp_path / "b.parquet")
    with pytest.raises(UsageError, match="plain file"):
        values("-", format="parquet")


def test_a_text_file_is_one_text_a_line_and_blank_lines_are_no_texts(write):
    rows = list(read_rows(write("a.txt", "첫 줄\r\n\n  \n둘째\u2028같은 줄\n끝")))
    assert [(row.line, row.values["text"]) for row in rows] == [(1, "첫 줄"), (4, "둘째\u2028같은 줄"), (5, "끝")]


def test_a_dash_is_standard_input(monkeypatch):
    assert values("-", stdin=io.BytesIO("가\n나\n".encode())) == [{"text": "가"}, {"text": "나"}]
    assert values("-", format="jsonl", stdin=io.BytesIO(b'"a"\n')) == [{"text": "a"}]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    assert values("-") == [{"text": "x"}]


FIELD = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=("Cs",)), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD), max_size=8))
def test_what_the_csv_module_writes_is_read_back(table):
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *table])
    assert values("-", format="csv", stdin=io.BytesIO(file.getvalue().encode())) == [{"a": a, "b": b} for a, b in table]


def test_a_quoted_field_may_span_lines_and_the_row_has_its_first_line(write):
    rows = list(read_rows(write("a.csv", 'id,text\n1,"two\nlines"\n2,one\n')))
    assert [(row.line, row.values["text"]) for row in rows] == [(2, "two\nlines"), (4, "one")]


def test_a_field_larger_than_the_csv_module_allows_is_read(write):
    assert len(values(write("a.csv", 'text\n"' + "가" * 200_000 + '"\n'))[0]["text"]) == 200_000


def test_quoting_can_be_switched_either_way(write):
    assert values(write("a.tsv", 'a\tb\n"x\ty"\n')) == [{"a": '"x', "b": 'y"'}]
    assert values(write("b.tsv", 'a\tb\n"x\ty"\tz\n'), quoting=True) == [{"a": "x\ty", "b": "z"}]
    assert values(write("c.csv", 'a,b\n"x,y"\n'), quoting=False) == [{"a": '"x', "b": 'y"'}]


def test_columns_can_be_named_numbered_or_renamed(write):
    path = write("a.tsv", "x\ty\nz\tw\n")
    assert values(path, header=False) == [{"0": "x", "1": "y"}, {"0": "z", "1": "w"}]
    assert values(path, columns=["p", "q"]) == [{"p": "x", "q": "y"}, {"p": "z", "q": "w"}]
    assert values(path, columns=["p", "q"], header=True) == [{"p": "z", "q": "w"}]
    assert values(write("b.csv", "a|b\n1|2\n"), delimiter="|") == [{"a": "1", "b": "2"}]


def test_a_first_line_of_data_is_not_taken_for_a_header(write):
    path = write("a.csv", "비가 온다.,It rains.,5.0\n눈,snow,4.2\n")
    assert values(path)[0] == {"0": "비가 온다.", "1": "It rains.", "2": "5.0"}
    assert len(values(path, header=True)) == 1


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"ok\n\xb0\xa1\n", r"a.txt line 2: byte 1 of the line \(0xb0\) is not utf-8"),
        ("a.txt", "가\n".encode("utf-16"), "starts like UTF-16"),
        ("a.csv", b"a,b\n1,2\n3\n", "a.csv line 3: 1 columns, expected 2"),
        ("a.csv", b'a,b\n1,2\n3,"x\n4,5\n', "a.csv line 3: a quote is opened and never closed"),
        ("a.csv", b'a,b\n1,"2"3\n', "a.csv line 2: a closing quote in column 2 is followed by more text"),
        ("a.csv", b"a,a\n1,2\n", "the column 'a' is there twice"),
        ("a.tsv", b"a\tb\n1\t2\t3\n", "a.tsv line 2: 3 columns, expected 2"),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', "a.jsonl line 2: not JSON: .* at column"),
        ("a.jsonl", b"[1]\n", "a.jsonl line 1: a JSON list, expected an object"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "a.jsonl line 1: (JSON nested too deeply|not JSON)"),
        ("a.jsonl", b"1" * 5_000 + b"\n", "a.jsonl line 1: not JSON"),
        ("a.json", b'{"a": 1}', "a.json: starts with '{', expected a JSON list"),
        ("a.json", b"", "a.json: starts with '', expected a JSON list"),
        ("a.json", b'[\n{"a": 1},\n{"a": }\n]', "a.json line 3: not JSON"),
        ("a.json", b'[{"a": 1}\n{"a": 2}]', "a.json line 2: found '{' after an element"),
        ("a.json", b'[{"a": 1},\n 3]', "a.json line 2: a JSON int"),
        ("a.json", b'[{"a": 1}', "a.json line 1: found '' after an element"),
        ("a.json", b'["\xff"]', "a.json line 1 or after: not utf-8"),
    ],
)
def test_a_broken_line_is_named(write, name, data, message):
    with pytest.raises(InputError, match=message):
        values(write(name, data))


def test_broken_lines_can_be_counted_and_the_rest_is_read(write):
    bad = BadLines(keep=2)
    path = write("a.csv", b'id,text\n1,ok\n2\n3,"x" y\n4,fine\n\xff,\xff\n5,"open\n6,last\n')
    assert [row["id"] for row in values(path, bad=bad)] == ["1", "4", "6"]
    assert bad.count == 4
    assert [message.split(":")[0] for message in bad.first] == ["a.csv line 3", "a.csv line 4"]


def test_bad_json_lines_and_bad_texts_are_counted_too(write):
    bad = BadLines()
    path = write("a.jsonl", '{"text": "a"}\n{"text": 3}\n{oops}\n{"txet": "b"}\n{"text": "c"}\n')
    assert [record.text for record in read_texts(path, bad=bad)] == ["a", "c"]
    assert bad.count == 3
    assert "a.jsonl line 2: 'text' is a int, expected a text" in bad.first
    assert "a.jsonl line 4: no column 'text', found 'txet'; did you mean 'txet'?" in bad.first


def test_a_line_over_the_limit_is_refused_while_reading(write):
    limits = replace(LIMITS, max_line_bytes=100)
    path = write("a.txt", b"short\n" + b"x" * 5_000_000 + b"\nlast\n")
    with pytest.raises(InputError, match="a.txt line 2: longer than 100 bytes"):
        values(path, limits=limits)
    bad = BadLines()
    assert values(path, limits=limits, bad=bad) == [{"text": "short"}, {"text": "last"}]
    assert bad.count == 1


def test_an_endless_line_is_never_held():
    class Endless(io.RawIOBase):
        def __init__(self):
            self.given = 0

        def readline(self, size=-1):
            assert 0 < size <= 101, "a whole endless line was asked for"
            return b"x" * size

    with pytest.raises(InputError, match="stdin line 1: longer than 100 bytes"):
        values("-", stdin=Endless(), limits=replace(LIMITS, max_line_bytes=100))


def test_a_large_json_list_is_read_in_pieces(write):
    rows = [{"text": "가나다 " * 50, "n": n} for n in range(4_000)]
    assert values(write("a.json", json.dumps(rows, ensure_ascii=False))) == rows
    with pytest.raises(InputError, match="longer than 1,000 bytes"):
        values(write("b.json", '["' + "x" * 600_000), limits=replace(LIMITS, max_line_bytes=1_000))


@pytest.mark.parametrize("keep", [-5, -20, 15])
def test_a_cut_gzip_file_is_a_clear_error(tmp_path, keep):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"".join(b"line %d\n" % n for n in range(1_000)))[:keep])
    with pytest.raises(InputError, match=r"a.txt.gz: the gzip file is cut off"):
        values(path)


def test_what_is_no_gzip_file_or_no_file_is_a_clear_error(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(b"plain text")
    with pytest.raises(InputError, match="a.txt.gz: not a whole gzip file"):
        values(tmp_path / "a.txt.gz")
    with pytest.raises(InputError, match="none.txt: cannot be read"):
        values(tmp_path / "none.txt")


def test_other_encodings_can_be_named(write):
    assert values(write("a.txt", "비가 온다\n".encode("cp949")), encoding="cp949") == [{"text": "비가 온다"}]
    with pytest.raises(UsageError, match="one-byte"):
        read_rows("-", encoding="utf-16")
    with pytest.raises(UsageError, match="unknown"):
        read_rows("-", encoding="klingon")


def test_the_suffix_says_the_format():
    assert [find_format(Path(name)) for name in ("a.TXT", "a.tsv.gz", "a.b.ndjson")] == ["txt", "tsv", "jsonl"]
    with pytest.raises(UsageError, match="no known format"):
        find_format(Path("a.docx"))


@pytest.mark.parametrize(("split", "rows"), [("train", 5_749), ("dev", 1_500), ("test", 1_379)])
def test_korsts_keeps_every_row(split, rows):
    path = SHARED / "korsts" / f"sts-{split}.tsv.gz"
    if not path.exists():
        pytest.skip("the KorSTS files are not here")
    found = list(read_rows(path))
    assert len(found) == rows
    assert set(found[0].values) == {"genre", "filename", "year", "id", "score", "sentence1", "sentence2"}


def test_requests_that_make_no_sense_are_refused(write):
    path = write("a.csv", SAME["a.csv"])
    with pytest.raises(UsageError, match="format 'xls': unknown, expected one of txt, csv"):
        read_rows(path, format="xls")
    for delimiter in ("", '"'):
        with pytest.raises(UsageError, match="expected a character such as a comma"):
            read_rows(path, delimiter=delimiter)
    with pytest.raises(InputError, match="a.csv line 1: the header has 2 columns, 3 names were given"):
        values(path, header=True, columns=["a", "b", "c"])


def test_parquet_without_pyarrow_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"munjang\[parquet\]"):
        values(tmp_path / "a.parquet")


def test_an_empty_json_list_has_no_rows(write):
    assert values(write("a.json", " [ ] ")) == []


def test_json_nested_too_deeply_is_refused_with_its_place(write):
    with pytest.raises(InputError, match=r"b.json .*nested too deeply"):
        values(write("b.json", '[{"text": "a"}, ' + '{"a":' * 100_000))


def test_a_blank_line_in_a_csv_file_is_no_row(write):
    assert values(write("a.csv", 'id,text\n\n1,"a\n\nb"\n \r\n2,c\n')) == [{"id": "1", "text": "a\n\nb"}, {"id": "2", "text": "c"}]


@pytest.mark.parametrize(
    ("format", "data", "message"),
    [
        ("csv", b"a,b,c,d\n1,2,3,4\n", "line 1: 4 columns, the limit is 3"),
        ("csv", b'"a","b","c","d"\n', "line 1: more than 3 columns, the limit"),
        ("tsv", b"a\tb\n1\t2\t3\t4\n", "line 2: 4 columns, the limit is 3"),
        ("jsonl", b'{"a": 1, "b": 2, "c": 3, "d": 4}\n', "line 1: 4 keys, the limit is 3"),
        ("json", b'[{"a": 1, "b": 2, "c": 3, "d": 4}]', "line 1: 4 keys, the limit is 3"),
    ],
)
def test_more_columns_than_the_limit_are_refused(format, data, message):
    with pytest.raises(InputError, match=message):
        list(read_rows("-", format=format, stdin=io.BytesIO(data), limits=replace(LIMITS, max_columns=3)))


def test_a_file_in_which_no_quote_is_closed_is_refused_before_it_is_read_again_and_again():
    bad = BadLines()
    with pytest.raises(InputError, match="as in many lines before\n  quotes are read as quotes"):
        list(read_rows("-", format="csv", stdin=io.BytesIO(b'x","\n' * 20_000), bad=bad))
    assert bad.count < 100


@pytest.mark.parametrize("cut", range(20, 64))
def test_rows_do_not_depend_on_where_a_piece_of_the_file_ends(tmp_path, monkeypatch, cut):
    rows = [{"id": number, "text": f"비 {number}", "more": [1.5, {"a": "}"}]} for number in range(3)]
    (tmp_path / "a.json").write_text("[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]", encoding="utf-8")
    monkeypatch.setattr(readers, "_CHUNK", cut)
    found = list(read_rows(tmp_path / "a.json"))
    assert [row.values for row in found] == rows
    assert [row.where for row in found] == [f"a.json line {number}" for number in (1, 2, 3)]
