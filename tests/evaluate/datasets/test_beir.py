"""BEIR folders."""

from __future__ import annotations

import gzip
import json

import pytest

from munjang.errors import InputError
from munjang.evaluate.datasets import read_beir, read_retrieval

CORPUS = [
    {"_id": "d1", "title": "Rain", "text": "It rains.\u2028Much."},
    {"_id": "d2", "title": "", "text": "It snows."},
    {"_id": "3", "text": "Sun."},
]
QUERIES = [{"_id": "q1", "text": "rain?"}, {"_id": "q2", "text": "snow?"}, {"_id": "q3", "text": "unjudged"}]


def _folder(tmp_path, qrels="query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td2\t1\n"):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in CORPUS), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(item) + "\n" for item in QUERIES))
    (tmp_path / "qrels" / "test.tsv").write_text(qrels)
    return tmp_path


def test_title_and_text_are_joined_and_only_judged_queries_kept(tmp_path):
    found = read_retrieval(_folder(tmp_path))
    assert found.corpus == {"d1": "Rain It rains.\u2028Much.", "d2": "It snows.", "3": "Sun."}
    assert found.queries == {"q1": "rain?", "q2": "snow?"}
    assert found.judgements == {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1}}
    assert found.layout == "beir (test)"


def test_files_may_be_gzip(tmp_path):
    folder = _folder(tmp_path)
    plain = read_beir(folder)
    data = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(data))
    assert read_beir(folder).corpus == plain.corpus


def test_a_judgement_of_an_unknown_document_is_named(tmp_path):
    with pytest.raises(InputError, match="test.tsv line 1: document 'd9'"):
        read_beir(_folder(tmp_path, "q1\td9\t1\n"))


@pytest.mark.parametrize("line", ["q1\td1", "q1\td1\thigh"])
def test_a_broken_judgement_is_named(line, tmp_path):
    with pytest.raises(InputError, match="test.tsv line 1"):
        read_beir(_folder(tmp_path, line + "\n"))


def test_broken_repeated_and_missing_parts_are_named(tmp_path):
    folder = _folder(tmp_path)
    with pytest.raises(InputError, match=r"no dev.tsv.*\n  there is test.tsv"):
        read_beir(folder, split="dev")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\n{"_id": "q1", "text": "y"}\n')
    with pytest.raises(InputError, match="queries.jsonl line 2: the id 'q1' occurs twice"):
        read_beir(folder)
    (folder / "queries.jsonl").write_text('{"_id": "q1"}\n')
    with pytest.raises(InputError, match="queries.jsonl line 1"):
        read_beir(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match="expected a retrieval folder"):
        read_retrieval(folder)
