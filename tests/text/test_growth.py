"""Readers and what is done to every text take time in proportion to their input, whatever it is made of."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.growth import LONG, SHORT, check_growth

from munjang.library.passages import split_passages
from munjang.library.records import documents
from munjang.library.where import MAX_LENGTH, MAX_PATTERN, like_pattern, matches, parse_where
from munjang.models.long_text import split_windows
from munjang.text.korean import kiwi_is_installed, morphemes
from munjang.text.phrases import find_noun_phrases, split_sentences
from munjang.text.readers import read_rows, read_texts
from munjang.text.records import BadLines, describe_missing_column
from munjang.text.tagging import choose_tagger
from munjang.text.tokenizer import load_tokenizer
from munjang.text.unicode import SCRIPTS, break_long_words, clean, is_written_with

MB = 2**20

FILES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "many lines": ("txt", lambda n: b"rain\n" * n),
    "blank lines": ("txt", lambda n: b"\n" * n),
    "a long line": ("txt", lambda n: b"a " * n),
    "rows": ("csv", lambda n: b"id,text\n" + b"1,rain\n" * n),
    "columns that differ": ("csv", lambda n: ",".join(f"c{number}" for number in range(n)).encode() + b"\n"),
    "columns that repeat at the end": ("csv", lambda n: ",".join(f"c{min(number, n - 2)}" for number in range(n)).encode() + b"\n"),
    "empty columns": ("csv", lambda n: b"text" + b"," * n + b"\n"),
    "columns of two rows": ("csv", lambda n: b"\n".join([b",".join(b"c%d" % number for number in range(n))] * 2)),
    "quoted columns": ("csv", lambda n: b",".join(b'"c%d"' % number for number in range(n)) + b"\n"),
    "doubled quotes": ("csv", lambda n: b'text\n"' + b'""' * n + b'"\n'),
    "a field of many lines": ("csv", lambda n: b'text\n"' + b"rain\n" * n + b'"\n'),
    "quotes that are never closed": ("csv", lambda n: b'x","\n' * n),
    "quotes that are closed too late": ("csv", lambda n: b'text\n"a\nb"c\n' * n),
    "quotes in a row": ("csv", lambda n: b'"' * n),
    "quoted TSV": ("tsv", lambda n: b'id\ttext\n1\t"rain\n' * n),
    "objects": ("jsonl", lambda n: b'{"text": "rain"}\n' * n),
    "keys": ("jsonl", lambda n: json.dumps({f"k{number}": 1 for number in range(n)} | {"text": "rain"}).encode()),
    "rows with other keys": ("jsonl", lambda n: b"".join(b'{"text": "rain", "k%d": "a"}\n' % number for number in range(n))),
    "nesting": ("jsonl", lambda n: b'{"text": "rain", "deep": ' + b"[" * n + b"]" * n + b"}"),
    "nested objects": ("jsonl", lambda n: b'{"deep": ' * n),
    "digits": ("jsonl", lambda n: b'{"text": "rain", "number": ' + b"1" * n + b"}"),
    "decimals": ("jsonl", lambda n: b'{"text": "rain", "number": 1.' + b"1" * n + b"}"),
    "escapes": ("jsonl", lambda n: b'{"text": "' + b"\\u0061" * n + b'"}'),
    "broken lines": ("jsonl", lambda n: b"{\n" * n),
    "a list": ("json", lambda n: b"[" + b'{"text": "rain"},' * n + b'"rain"]'),
    "a list of decimals": ("json", lambda n: b"[1." + b"1" * n + b"]"),
    "a long element": ("json", lambda n: b'["' + b"a" * n + b'"]'),
    "a list that is not closed": ("json", lambda n: b'["a", ' + b"[" * n),
    "space in a list": ("json", lambda n: b"[" + b" \n" * n + b"]"),
}


def read(data: bytes, kind: str) -> None:
    for _ in documents(read_texts("-", format=kind, stdin=io.BytesIO(data), bad=BadLines(), on_guess=lambda _: None), bad=BadLines()):  # type: ignore[arg-type]
        pass


def reading(name: str) -> Callable[[int], Callable[[], object]]:
    kind, make = FILES[name]

    def prepare(size: int) -> Callable[[], object]:
        data = make(size)
        return lambda: read(data, kind)

    return prepare


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_in_linear_time(name: str) -> None:
    check_growth(name, reading(name), limit=2**16 if "columns" in name else MB)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_large_files_are_read_in_linear_time(name: str) -> None:
    check_growth(name, reading(name), limit=2**17 if "columns" in name else 8 * MB, seconds=LONG)


def check_packed_growth(tmp_path: Path, seconds: float) -> None:
    def prepare(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.csv.gz"
        path.write_bytes(gzip.compress(b"id,text\n" + b"1,rain\n" * size, 1))
        return lambda: sum(1 for _ in read_rows(path))

    check_growth("gzip", prepare, limit=4 * MB, seconds=seconds)


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"])
def test_gzip_files_are_read_in_linear_time(tmp_path: Path, seconds: float) -> None:
    check_packed_growth(tmp_path, seconds)


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"])
@pytest.mark.parametrize("wide", [False, True], ids=["rows", "columns"])
def test_parquet_files_are_read_in_linear_time(tmp_path: Path, seconds: float, wide: bool) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def prepare(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.parquet"
        columns = {f"c{number}": ["rain"] for number in range(size)} if wide else {"text": ["rain"] * size}
        parquet.write_table(arrow.table(columns), path)
        return lambda: sum(1 for _ in read_rows(path))

    check_growth("Parquet", prepare, limit=16_384 if wide else 4 * MB, seconds=seconds)


TEXTS: dict[str, Callable[[int], str]] = {
    "words": lambda n: "rain " * n,
    "one word": lambda n: "a" * n,
    "Korean": lambda n: "비가 많이 온다. " * n,
    "Korean without spaces": lambda n: "가나다라마" * n,
    "decomposed Korean": lambda n: "\u1112\u1161\u11ab" * n,
    "vowels alone": lambda n: "\u1161" * n,
    "marks": lambda n: "a" + "\u0301" * n,
    "marks in the wrong order": lambda n: "a" + "\u0315\u0300\u0327" * n,
    "joined emoji": lambda n: "👩\u200d" * n,
    "spaces": lambda n: " " * n + "a",
    "line feeds": lambda n: "\n" * n + "a",
    "full stops": lambda n: "." * n,
    "ends of sentences": lambda n: 'a."\n' * n,
    "quotes": lambda n: '"' * n,
    "digits": lambda n: "1" * n,
    "numbers": lambda n: "1,000.5 " * n,
    "special tokens": lambda n: "[CLS]" * n,
    "halves of special tokens": lambda n: "[CL" * n,
    "hashes": lambda n: "##" * n,
    "hyphens": lambda n: "a-" * n,
    "addresses": lambda n: "http://a.b/c?d=e&" * n,
    "NULs": lambda n: "\x00" * n,
    "surrogates": lambda n: "\ud800" * n,
    "rare letters": lambda n: "𐐀" * n,
}


def texts(call: Callable[[str], object], make: Callable[[int], str]) -> Callable[[int], Callable[[], object]]:
    def prepare(size: int) -> Callable[[], object]:
        text = make(size)
        return lambda: call(text)

    return prepare


POLICY: dict[str, Callable[[str], object]] = {
    "clean": clean,
    "break_long_words": break_long_words,
    "documents": lambda text: list(documents([text, {"text": "a", "id": text[:100], "note": text}], bad=BadLines())),
    "split_passages": lambda text: split_passages(text, characters=1_000, overlap=200),
    "bigrams": lambda text: morphemes(text, analyser="bigrams"),
    "phrases": lambda text: list(find_noun_phrases([text], by=choose_tagger("plain"))),
    "sentences": lambda text: split_sentences(text, by=choose_tagger("plain")),
    "scripts": lambda text: is_written_with(text, SCRIPTS["ko"].letters),
    "filter": lambda text: parse_where("a = '" + text.replace("'", "") + "'"),
}


@pytest.mark.parametrize("function", POLICY)
def test_every_text_is_handled_in_linear_time(function: str) -> None:
    for kind, make in TEXTS.items():
        check_growth(f"{function} of {kind}", texts(POLICY[function], make), limit=MB // 32)


@pytest.mark.slow
@pytest.mark.parametrize("function", POLICY)
@pytest.mark.parametrize("kind", TEXTS)
def test_every_large_text_is_handled_in_linear_time(function: str, kind: str) -> None:
    check_growth(f"{function} of {kind}", texts(POLICY[function], TEXTS[kind]), limit=4 * MB, seconds=1.0)


@pytest.mark.slow
@pytest.mark.skipif(not kiwi_is_installed(), reason="the extra korean is not installed")
@pytest.mark.parametrize("kind", TEXTS)
def test_kiwi_handles_every_text_in_linear_time(kind: str) -> None:
    check_growth(f"kiwi of {kind}", texts(lambda text: morphemes(clean(text), analyser="kiwi"), TEXTS[kind]), limit=MB // 4, seconds=1.0)


CONDITIONS: dict[str, tuple[int, Callable[[int], object]]] = {
    "many tests": (500, lambda n: parse_where(" and ".join(f"k{number} = 1" for number in range(n)))),
    "many values": (5_000, lambda n: parse_where(f"a in ({', '.join(map(str, range(n)))})")),
    "parentheses": (MAX_LENGTH, lambda n: parse_where("(" * n)),
    "nots": (MAX_LENGTH, lambda n: parse_where("not " * n)),
    "an open quote": (MAX_LENGTH, lambda n: parse_where("a = '" + "b" * n)),
    "quotes": (MAX_LENGTH, lambda n: parse_where("a = " + "'" * n)),
    "a long number": (MAX_LENGTH, lambda n: parse_where("a = " + "1" * n)),
    "wildcards": (MAX_PATTERN // 2, lambda n: like_pattern("%a" * n + "b").fullmatch("a" * 20 * n)),
    "a pattern over a long text": (MB, lambda n: matches(parse_where("a like '%a%a%a%a%a%b'"), {"a": "a" * n})),
    "a column that was meant": (MB, lambda n: describe_missing_column("ab" * n, {"ba" * n: 1}, where="here")),
    "columns that were meant": (
        16_384,
        lambda n: describe_missing_column("column", dict.fromkeys(f"columm{number}" for number in range(n)), where="here"),
    ),
    "windows": (MB, lambda n: split_windows(range(n), size=512, stride=400)),
}


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_filters_patterns_and_names_are_handled_in_linear_time(name: str, seconds: float) -> None:
    limit, call = CONDITIONS[name]
    check_growth(name, lambda size: lambda: call(size), limit=limit, seconds=seconds, start=8)


def test_a_tokenizer_reads_every_text_in_linear_time(tiny_bert_folder: Path) -> None:
    tokenizer = load_tokenizer(tiny_bert_folder)
    for kind, make in TEXTS.items():
        check_growth(f"tokens of {kind}", texts(lambda text: tokenizer.encode([text]), make), limit=MB // 32)
