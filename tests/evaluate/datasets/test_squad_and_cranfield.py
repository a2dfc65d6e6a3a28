"""SQuAD JSON and the Cranfield collection as retrieval tasks."""

from __future__ import annotations

import json

import pytest

from munjang.errors import InputError
from munjang.evaluate.datasets import read_cranfield, read_retrieval, read_squad


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
