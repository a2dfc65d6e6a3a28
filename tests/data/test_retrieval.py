"""BEIR folders."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from munjang.data import read_beir, read_cranfield, read_retrieval, read_squad
from munjang.data.retrieval import read_qrels, read_run, write_run
from munjang.errors import InputError, UsageError

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


def _squad(tmp_path, value):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_equal_paragraphs_are_one_document_and_repeated_ids_stay_apart(tmp_path):
    def paragraph(context, *asked):
        return {"context": context, "qas": [{"id": key, "question": text, "answers": []} for key, text in asked]}

    made = {
        "data": [
            {"paragraphs": [paragraph("rain", ("1", "wet?")), paragraph("sun", ("2", "dry?"))]},
            {"paragraphs": [paragraph("rain", ("1", "cold?"))]},
        ]
    }
    found = read_squad(_squad(tmp_path, made))
    assert found.corpus == {"p0": "rain", "p1": "sun"}
    assert list(found.queries.values()) == ["wet?", "dry?", "cold?"]
    assert list(found.judgements.values()) == [{"p0": 1}, {"p1": 1}, {"p0": 1}]
    assert "1 paragraph merged with an equal one" in found.notes[0]


@pytest.mark.parametrize("value", [[], {"data": [{}]}, {"data": [{"paragraphs": [{"context": 3, "qas": []}]}]}, "x"])
def test_other_json_is_refused(value, tmp_path):
    with pytest.raises(InputError, match="expected SQuAD JSON"):
        read_retrieval(_squad(tmp_path, value))


DOCUMENTS = (
    "<doc>\n<docno>1</docno>\n<title>wings</title>\n<text>wings &amp; air\n flow</text>\n</doc>\n<doc><docno>2</docno><text></text></doc>"
)
TOPICS = "<xml><top>\r\n<num> 1</num><title>\r\nwhat lifts\r\n</title></top><top><num> 4</num><title>what drags</title></top></xml>"


def _cranfield(tmp_path, qrels):
    for name, text in (("cran.all.1400.xml", DOCUMENTS), ("cran.qry.xml", TOPICS), ("cranqrel.txt", qrels)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_queries_are_counted_by_their_place_not_by_their_number(tmp_path):
    found = read_retrieval(_cranfield(tmp_path, "1 0 1 1\r\n2 0 2 3\r\n"))
    assert found.corpus == {"1": "wings & air flow", "2": ""}
    assert found.queries == {"1": "what lifts", "2": "what drags"}
    assert found.judgements == {"1": {"1": 1}, "2": {"2": 3}}


def test_a_judged_query_that_is_not_there_is_refused(tmp_path):
    folder = _cranfield(tmp_path, "4 0 1 1\n")
    with pytest.raises(InputError, match="query 4 is judged"):
        read_cranfield(folder / "cran.all.1400.xml", folder / "cran.qry.xml", folder / "cranqrel.txt")


def test_a_cranfield_collection_that_lacks_something_is_refused(tmp_path):
    folder = _cranfield(tmp_path, "1 0 1 1\n3 0 1 1\n")
    with pytest.raises(InputError, match="cranqrel.txt: query 3 is judged, but there are only 2 queries"):
        read_retrieval(folder)
    (folder / "cran.all.1400.xml").write_text("<doc><text>no number</text></doc>")
    with pytest.raises(InputError, match="cran.all.1400.xml: an entry without <docno>"):
        read_retrieval(folder)
    (folder / "cran.all.1400.xml").write_text("no documents")
    with pytest.raises(InputError, match="no <doc> or no <top> found"):
        read_retrieval(folder)
    (folder / "cran.qry.xml").unlink()
    with pytest.raises(InputError, match=r"0 files cran.qry.xml\*, expected one"):
        read_retrieval(folder)


def test_a_place_without_a_retrieval_task_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(InputError, match="expected a retrieval folder"):
        read_retrieval(tmp_path)
    with pytest.raises(InputError, match="a.txt: expected a BEIR folder"):
        read_retrieval(tmp_path / "a.txt")


names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=6)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, st.dictionaries(names, st.floats(-1e9, 1e9), min_size=1, max_size=5), max_size=4))
def test_a_run_reads_back_exactly(tmp_path, run):
    write_run(tmp_path / "run", run)
    assert read_run(tmp_path / "run") == run


def test_ranks_are_written_in_order(tmp_path):
    write_run(tmp_path / "run", {"q": {"a": 0.1, "b": 0.9}}, tag="t")
    assert (tmp_path / "run").read_text() == "q Q0 b 1 0.9 t\nq Q0 a 2 0.1 t\n"


def test_judgements_are_read_with_carriage_returns_and_blank_lines(tmp_path):
    (tmp_path / "q").write_bytes(b"1 0 d1 1\r\n\r\n1 0 d2 0\r\n2 0 d1 2")
    assert read_qrels(tmp_path / "q") == {"1": {"d1": 1, "d2": 0}, "2": {"d1": 2}}


@pytest.mark.parametrize(
    ("text", "said"), [("1 0 d1", "3 fields"), ("1 0 d1 high", "'high'"), ("1 0 d 1\n1 0 d 1", "line 2.*judged twice")]
)
def test_broken_judgements_are_named(text, said, tmp_path):
    (tmp_path / "q").write_text(text)
    with pytest.raises(InputError, match=said):
        read_qrels(tmp_path / "q")


@pytest.mark.parametrize(("text", "said"), [("q Q0 d 1 x t", "'x'"), ("q Q0 d 1 1 t\nq Q0 d 2 0 t", "ranked twice")])
def test_broken_runs_are_named(text, said, tmp_path):
    (tmp_path / "r").write_text(text)
    with pytest.raises(InputError, match=said):
        read_run(tmp_path / "r")


def test_an_id_with_a_space_is_not_written(tmp_path):
    with pytest.raises(UsageError, match="white space"):
        write_run(tmp_path / "r", {"q 1": {"d": 1.0}})
