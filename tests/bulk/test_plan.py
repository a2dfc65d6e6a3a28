"""However a file is cut into shards, its rows are those of the whole file, each once and in order."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bulk.conftest import sentences

from munjang.bulk import input_streams
from munjang.bulk.find_inputs import find_inputs
from munjang.bulk.input_streams import forget_packed, inspect_input, open_lines
from munjang.bulk.job import BulkSettings, InputFile
from munjang.bulk.plan import ShardRows, guess_rows, plan_shards, read_shard
from munjang.errors import InputError, UsageError
from munjang.text.readers import read_rows
from munjang.text.records import BadLines
from munjang.text.unicode import clean

FIELD = st.text(st.sampled_from('ab ,"\n\t비é'), max_size=8)


def parts(path: Path, given_settings: BulkSettings) -> tuple[InputFile, list[ShardRows]]:
    file = inspect_input(str(path), given_settings)
    try:
        return file, [read_shard(file, spec, given_settings) for spec in plan_shards([file], given_settings)]
    finally:
        forget_packed()


def in_shards(path: Path, shard_rows: int, **more) -> list[str]:
    _, shards = parts(path, BulkSettings(shard_rows=shard_rows, **more))
    return [text for shard in shards for text in shard.texts]


def in_whole(path: Path, **more) -> list[str]:
    rows = [row.values.get("text") for row in read_rows(path, bad=BadLines(), **more)]
    return [clean(text) for text in rows if isinstance(text, str)]


def written(folder: Path, name: str, content: str, packed: bool) -> Path:
    path = folder / (name + (".gz" if packed else ""))
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(FIELD, min_size=1, max_size=30), shard_rows=st.integers(1, 12))
def test_quoted_csv_with_line_feeds_in_fields(tmp_path, packed, records, shard_rows):
    quoted = [value.replace('"', '""') for value in records]
    content = "id,text\n" + "".join(f'{number},"{value}"\n' for number, value in enumerate(quoted))
    path = written(tmp_path, "a.csv", content, packed)
    assert in_shards(path, shard_rows) == in_whole(path) == [clean(value) for value in records]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(FIELD, min_size=1, max_size=30), shard_rows=st.integers(1, 12), last=st.sampled_from(["", "\n"]))
def test_broken_csv_gives_the_same_rows_in_shards(tmp_path, packed, lines, shard_rows, last):
    path = written(tmp_path, "a.csv", "id,text\n1,first\n" + "\n".join(lines) + last, packed)
    assert in_shards(path, shard_rows) == in_whole(path)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("format", ["txt", "jsonl", "tsv"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(FIELD, min_size=1, max_size=30), shard_rows=st.integers(1, 12), end=st.sampled_from(["\n", "\r\n"]))
def test_lines(tmp_path, format, packed, values, shard_rows, end):
    if format == "jsonl":
        lines = [json.dumps({"text": value, "more": "비" * len(value)}, ensure_ascii=False) for value in values] + ["{broken"]
    else:
        lines = [value.replace("\n", " ") for value in values]
    head = "id\ttext" + end if format == "tsv" else ""
    lines = [f"{number}\t{line}" for number, line in enumerate(lines)] if format == "tsv" else ["\ufefffirst", *lines]
    if format == "jsonl":
        lines = lines[1:]
    path = written(tmp_path, f"a.{format}", head + end.join(lines) + end, packed)
    assert in_shards(path, shard_rows) == in_whole(path)


@pytest.mark.parametrize("shard_rows", [1, 7, 10, 1000])
def test_parquet_is_cut_by_rows_whatever_its_row_groups(tmp_path, shard_rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = [f"text {number}" for number in range(57)]
    parquet.write_table(pyarrow.table({"text": texts, "n": range(57)}), tmp_path / "a.parquet", row_group_size=13)
    assert in_shards(tmp_path / "a.parquet", shard_rows) == texts
    file, shards = parts(tmp_path / "a.parquet", BulkSettings(shard_rows=shard_rows))
    assert guess_rows(file) == 57
    assert [id for shard in shards for id in shard.ids] == [f"0:{number}" for number in range(57)]


def test_a_row_without_an_id_is_known_by_the_byte_it_starts_at(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("비\ntwo\n\nthree\n".encode())
    for shard_rows in (1, 2, 100):
        _, shards = parts(path, BulkSettings(shard_rows=shard_rows))
        assert [id for shard in shards for id in shard.ids] == ["0:0", "0:4", "0:9"]


def test_shards_are_about_as_large_as_asked_for(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line number {number:05d}\n" for number in range(1000)))
    _, shards = parts(path, BulkSettings(shard_rows=100))
    assert [len(shard.texts) for shard in shards] == [100] * 10


def test_an_empty_file_has_no_shards(tmp_path):
    for name in ("a.txt", "a.csv", "a.jsonl"):
        (tmp_path / name).write_text("")
        assert parts(tmp_path / name, BulkSettings())[1] == []


def test_inputs_are_files_folders_and_patterns_in_a_fixed_order(tmp_path):
    for name in ("b.txt", "a.csv", "c.json", "notes.md", ".hidden.txt", "deep/d.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    known = [str(tmp_path / name) for name in ("a.csv", "b.txt", "deep/d.jsonl")]
    assert find_inputs([str(tmp_path)]) == known
    assert find_inputs([str(tmp_path / "*.txt"), str(tmp_path / "b.txt")]) == [known[1]]
    assert find_inputs([str(tmp_path / "**/*.jsonl")]) == [known[2]]
    for name in (tmp_path / "none.txt", tmp_path / "*.nothing"):
        with pytest.raises(InputError, match="no file there"):
            find_inputs([str(name)])
    with pytest.raises(UsageError, match="standard input"):
        find_inputs(["-"])


def test_fsspec_addresses_are_read(tmp_path):
    pytest.importorskip("fsspec")
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    for url in (f"file://{tmp_path}/a.txt", f"file://{tmp_path}", f"file://{tmp_path}/*.txt"):
        [found] = find_inputs([url])
        assert found == f"file://{tmp_path}/a.txt"
        assert in_shards(found, 1) == ["one", "two"]


def test_a_json_list_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(UsageError, match="JSON Lines"):
        inspect_input(str(tmp_path / "a.json"), BulkSettings())


def test_a_missing_column_is_said_before_work_begins(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,x\n")
    with pytest.raises(InputError, match="no column 'txt'.*did you mean 'text'"):
        inspect_input(str(tmp_path / "a.csv"), BulkSettings(text_column="txt"))


def test_a_cut_gzip_file_is_named(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n" * 1000)[:-20])
    with pytest.raises(InputError, match="a.txt.gz: the gzip file is cut off"):
        in_shards(tmp_path / "a.txt.gz", 10)


def test_parts_of_a_gzip_file_are_read_forward_without_unpacking_it_again(tmp_path, monkeypatch):

    opened = []
    real = input_streams.open_raw
    path = written(tmp_path, "a.txt", "".join(f"{number}\n" for number in range(500)), packed=True)
    chosen = BulkSettings(shard_rows=20)
    file = inspect_input(str(path), chosen)
    specs = list(plan_shards([file], chosen))
    forget_packed()
    monkeypatch.setattr(input_streams, "open_raw", lambda path: opened.append(path) or real(path))
    texts = [text for spec in specs for text in read_shard(file, spec, chosen).texts]
    assert texts == [str(number) for number in range(500)]
    assert len(specs) == 25
    assert len(opened) == 1
    assert read_shard(file, specs[3], chosen).texts == [str(number) for number in range(60, 80)]
    forget_packed()


def test_shards_that_begin_deep_inside_a_row_group_hold_their_own_rows(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [f"text {number}" for number in range(2_500)]
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet", row_group_size=2_500)
    _, shards = parts(tmp_path / "a.parquet", BulkSettings(shard_rows=1_200))
    assert [text for shard in shards for text in shard.texts] == texts
    assert [shard.ids[0] for shard in shards] == ["0:0", "0:1200"]


def test_an_id_beyond_the_limit_is_a_rejected_row(tmp_path):
    rows = [{"id": "a", "text": "rain"}, {"id": "비" * 2_000, "text": "snow"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file, [shard] = parts(tmp_path / "a.jsonl", BulkSettings())
    assert file.id_column == "id"
    assert shard.texts == ["rain"]
    [rejected] = shard.rejected
    assert rejected.line == 1
    assert re.fullmatch(r"the id '비+…' has 6,000 bytes, the limit is [\d,]+", rejected.reason)


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 2**20 + 10, 3 * 2**20, 3 * 2**20 + 4, 3 * 2**20 + 10])
def test_a_line_belongs_to_the_part_it_starts_in_however_long_it_is(tmp_path, cut):
    lines = [b"one\n", b"x" * (3 * 2**20) + b"\n", b"the end has no line feed"]
    (tmp_path / "a.txt").write_bytes(b"".join(lines))
    found = []
    for start, stop in ((0, cut), (cut, None)):
        with open_lines(str(tmp_path / "a.txt"), start, stop) as part:
            found.append(b"".join(iter(part.readline, b"")).removeprefix(b"\n" if start else b""))
            assert all(start <= at and (stop is None or at < stop) for at in part.starts)
    assert b"".join(found) == b"".join(lines)


def test_files_of_an_object_store_are_read_like_those_of_a_folder(tmp_path):
    """Stores give files that can only read whole lines; those of fsspec's memory can more."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.local import LocalFileSystem
    from fsspec.spec import AbstractBufferedFile

    class StoredFile(AbstractBufferedFile):
        def _fetch_range(self, start, end):
            return Path(self.path).read_bytes()[start:end]

    class Store(LocalFileSystem):
        protocol = "store"

        def _open(self, path, mode="rb", **more):
            return StoredFile(self, path, mode, size=Path(path).stat().st_size)

        @classmethod
        def _strip_protocol(cls, path):
            return str(path).removeprefix("store://")

    fsspec.register_implementation("store", Store, clobber=True)
    settings = BulkSettings(shard_rows=7)
    for name in ("a.jsonl", "b.jsonl.gz"):
        content = "".join(f'{{"text": "{text}"}}\n' for text in sentences(30)).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        file = inspect_input(f"store://{tmp_path}/{name}", settings)
        specs = list(plan_shards([file], settings))
        assert len(specs) >= 4
        assert [text for spec in specs for text in read_shard(file, spec, settings).texts] == sentences(30)
