"""A library as people use it: add, search, update, remove, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from munjang.errors import InputError, TextError, UsageError
from munjang.library.index_config import Tuning
from munjang.library.library import Library
from munjang.library.ranking import Hybrid, highest_bm25
from munjang.library.rerank import BudgetWarning
from munjang.text.records import Record

NEWS = [
    {"id": "1", "text": "snow falls in seoul", "year": 2020, "category": "weather"},
    {"id": "2", "text": "rain falls in busan", "year": 2021, "category": "weather"},
    {"id": "3", "text": "the market falls", "year": 2021, "category": "money"},
    {"id": "4", "text": "겨울 서울 눈", "metadata": {"year": 2022, "category": "날씨"}},
]


def ids(hits) -> list[str]:
    return [hit.id for hit in hits]


def test_what_is_added_is_found_by_meaning(library):
    report = library.add(NEWS)
    assert (report.added, report.passages, report.records) == (4, 4, 4)
    [hit] = library.search("snow in seoul", k=1)
    assert (hit.id, hit.metadata) == ("1", {"year": 2020, "category": "weather"})
    assert hit.passage == hit.text == "snow falls in seoul"
    assert 0.5 < hit.score <= 1


def test_a_record_may_be_a_text_a_mapping_or_a_record_of_a_reader(library):
    library.add(["plain", {"text": "mapping"}, Record("7", "read", {"a": 1}, "news.csv line 2")])
    assert library.get(["7"])[0].metadata == {"a": 1}
    assert library.info().documents == 3


def test_only_new_and_changed_texts_are_encoded(library, encoder):
    library.add(NEWS)
    encoder.seen.clear()
    report = library.add([*NEWS[:2], NEWS[2] | {"year": 1999}, NEWS[3] | {"text": "new text"}, {"id": "5", "text": "five"}])
    assert encoder.seen == ["new text", "five"]
    assert (report.unchanged, report.relabelled, report.changed, report.added) == (2, 1, 1, 1)
    assert library.get(["3"])[0].metadata["year"] == 1999


def test_the_last_of_several_records_with_one_id_stays(library):
    library.add([{"id": "a", "text": "first"}, {"id": "a", "text": "second"}])
    assert [document.text for document in library.get(["a"])] == ["second"]


def test_progress_is_told_what_is_on_disk(opened, encoder):
    library = opened(encoder, tuning=Tuning(batch_documents=2))
    told = []
    other = opened(encoder)
    library.add(NEWS, progress=lambda count: told.append((count, other.info().documents)))
    assert [each for each in told if each[0]] == [(2, 2), (2, 4)]  # 0 in between asks whether to go on


def test_update_refuses_an_unknown_id(library):
    library.add(NEWS)
    library.update([{"id": "1", "text": "changed"}])
    with pytest.raises(InputError, match="no document 'x'"):
        library.update([{"id": "2", "text": "changed"}, {"id": "x", "text": "y"}])
    assert [document.text for document in library.get(["1", "2"])] == ["changed", NEWS[1]["text"]]


def test_removed_documents_are_found_no_more(library):
    library.add(NEWS)
    assert ids(library.search("snow", k=4))[0] == "1"
    assert library.remove(["1", "nobody", "\x00"]) == 1
    assert "1" not in ids(library.search("snow", k=4))
    library.compact()
    assert library.check() == []


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("year >= 2021", {"2", "3", "4"}),
        ("year = 2021 and category = 'weather'", {"2"}),
        ("category in ('money', '날씨')", {"3", "4"}),
        ("not category like 'W%'", {"3", "4"}),
        ("year > 3000", set()),
    ],
)
def test_filters_keep_what_fits(library, where, expected):
    library.add(NEWS)
    assert set(ids(library.search("falls", where=where))) == expected
    assert set(ids(library.search("falls", where=where))) == expected


def test_a_search_finds_by_words_what_meaning_ranks_low(library):
    library.add(
        [{"id": str(i), "text": f"filler{i} common words here"} for i in range(50)] + [{"id": "x", "text": "common words zyxgadget42"}]
    )
    [hit] = library.search("zyxgadget42", k=1, by="words")
    assert hit.id == "x"
    [hit] = library.search("zyxgadget42 common", k=1, explain=True)
    assert hit.id == "x"
    assert hit.explanation.words == ("zyxgadget42", "common")
    assert hit.explanation.words_rank == 1
    highest = highest_bm25(51, [1, 51])
    cosine, words = hit.explanation.cosine, hit.explanation.bm25 / highest
    assert hit.explanation.words_share == pytest.approx(words)
    assert hit.score == pytest.approx((0.5 * cosine + 0.6 * words) / 1.1)
    [hit] = library.search("zyxgadget42 common", k=1, by=Hybrid(words=1, by="ranks"), explain=True)
    assert hit.score == pytest.approx(sum(1 / (60 + rank) for rank in (hit.explanation.meaning_rank, hit.explanation.words_rank)))


def test_words_alone_need_no_model_and_documents_to_look_near_need_meaning(opened, encoder):
    library = opened(encoder)
    library.add(NEWS)
    library.close()
    with Library.open(library.store.name, None, create=False) as alone:
        assert ids(alone.search("snow", by="words")) == ["1"]
        with pytest.raises(UsageError, match="without a model"):
            alone.search("snow")
        with pytest.raises(UsageError, match="leave by out"):
            alone.search("snow", by="words", like=["2"])


def test_the_old_argument_for_words_still_works_and_warns(library):
    library.add(NEWS)
    for old, new in ((True, None), (False, "meaning"), (Hybrid(words=0.1), Hybrid(words=0.1))):
        with pytest.warns(DeprecationWarning, match='by="meaning"'):
            hits = library.search("snow in seoul", hybrid=old)
        assert hits == library.search("snow in seoul", by=new)
    with pytest.raises(UsageError, match="meaning, words"):
        library.search("snow", by="colour")


def test_a_long_document_is_found_by_its_passage(opened, encoder):
    library = opened(encoder, passage_characters=200)
    filler = "lorem ipsum dolor sit amet. " * 40
    library.add([{"id": "long", "text": filler + "needle haystack search. " + filler}, {"id": "short", "text": "lorem"}])
    [hit] = library.search("needle haystack search", k=1)
    assert hit.id == "long"
    assert "needle haystack" in hit.passage
    assert hit.text[hit.start : hit.stop] == hit.passage
    assert len(hit.passage) <= 200
    assert ids(library.search("lorem ipsum", k=2)).count("long") == 1


def test_a_document_stands_in_the_answer_once_and_others_are_not_crowded_out(opened, encoder):
    library = opened(encoder, passage_characters=200)
    library.add([{"id": "long", "text": "snow falls here. " * 500}, *({"id": str(i), "text": f"snow other{i}"} for i in range(20))])
    found = ids(library.search("snow falls here.", k=15))
    assert len(found) == len(set(found)) == 15
    assert found[0] == "long"


def test_like_and_unlike_look_near_and_away(library):
    library.add(NEWS)
    assert ids(library.search(like=["1"], k=1)) == ["2"]
    assert "1" not in ids(library.search("snow falls in seoul", like=["1"], k=4))
    near, away = library.search(like=["2"], k=4), library.search(like=["2"], unlike=["1"], k=4)
    assert {hit.id for hit in near} == {"1", "3", "4"}
    assert {hit.id for hit in away} == {"3", "4"}
    with pytest.raises(InputError, match="no document 'nobody'"):
        library.search(like=["nobody"])
    with pytest.raises(UsageError):
        library.search()


def test_a_filter_in_the_form_of_another_tool_is_refused_with_ours(library):
    library.add(NEWS)
    with pytest.raises(UsageError, match="where is a dict, expected a filter such as"):
        library.search("snow", where={"year": {"$gte": 2020}})


class LengthScorer:
    """Likes short passages."""

    def predict(self, pairs):
        return np.array([-len(text) for _, text in pairs], dtype=np.float32)


def test_a_reranker_decides_the_order(library):
    library.add(NEWS)
    hits = library.search("falls", k=2, rerank=LengthScorer())
    assert ids(hits) == ["4", "3"]
    assert all(hit.reranked for hit in hits)
    with pytest.warns(BudgetWarning, match=r"the budget of 0 s was up after re-ranking 0 of \d documents"):
        spent = library.search("falls", k=2, rerank=LengthScorer(), budget_seconds=0)
    assert spent == library.search("falls", k=2)
    assert not any(hit.reranked for hit in spent)


def test_a_reranker_with_several_labels_is_refused(library):
    class Labels:
        def predict(self, pairs):
            return np.zeros((len(pairs), 3), dtype=np.float32)

    library.add(NEWS)
    with pytest.raises(UsageError, match="3 scores"):
        library.search("falls", rerank=Labels())


def test_min_score_leaves_out_what_is_below(library):
    library.add(NEWS)
    hits = library.search("snow falls in seoul", min_score=0.9, by="meaning")
    assert ids(hits) == ["1"]


def test_many_queries_are_answered_as_each_alone(library):
    library.add({"id": str(i), "text": f"word{i % 7} other{i % 11} more{i}"} for i in range(300))
    queries = [f"word{i % 7} more{i}" for i in range(40)]
    together = library.search_many(queries, k=5)
    for query, hits in zip(queries, together, strict=True):
        alone = library.search(query, k=5)
        np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in alone], atol=1e-6)
        assert hits[0].id == alone[0].id
    assert library.search_many([]) == []


def test_another_model_is_refused_with_both_names(opened, make_encoder):
    opened(make_encoder("first"))
    with pytest.raises(UsageError, match="'first'.*'second'"):
        opened(make_encoder("second"))


def test_reencode_changes_the_model_in_place(opened, make_encoder):
    library = opened(make_encoder("first"))
    library.add(NEWS)
    other = make_encoder("second", 24)
    library.search("snow")
    library.reencode(other)
    assert library.info().model == "second"
    assert library.info().dimension == 24
    assert ids(library.search("snow in seoul", k=1)) == ["1"]
    assert library.check() == []
    assert library.get(["4"])[0].metadata == {"year": 2022, "category": "날씨"}


def test_a_reencode_that_fails_leaves_the_old_library(opened, make_encoder):
    library = opened(make_encoder("first"))
    library.add(NEWS)
    broken = make_encoder("second", 24)
    broken.encode = lambda texts: 1 / 0
    with pytest.raises(ZeroDivisionError):
        library.reencode(broken)
    assert library.info().model == "first"
    assert ids(library.search("snow in seoul", k=1)) == ["1"]


def test_a_library_whose_model_was_changed_by_another_is_neither_searched_nor_added_to(opened, make_encoder):
    first, other = opened(make_encoder("first")), opened(make_encoder("first"))
    first.add(NEWS)
    other.reencode(make_encoder("second", 24))
    for work in (lambda: first.search("snow"), lambda: first.add(["rain"]), lambda: first.search_many(["a", "b"])):
        with pytest.raises(UsageError, match="'second'.*'first'"):
            work()
    assert other.check() == []


def test_without_a_model_a_library_can_be_read_but_not_asked(opened, encoder, tmp_path):
    opened(encoder).add(NEWS)
    library = opened(None)
    assert library.info().documents == 4
    assert ids(library.search(like=["1"], k=1)) == ["2"]
    with pytest.raises(UsageError, match="without a model"):
        library.search("snow")
    with pytest.raises(InputError, match="no such library"):
        Library.open(tmp_path / "missing.db")
    with pytest.raises(InputError, match="no such library"):
        Library.open(tmp_path / "missing.db", encoder, create=False)


def test_a_file_that_is_no_library_is_refused(opened, encoder, tmp_path):
    import sqlite3

    (tmp_path / "text.db").write_text("not a database at all, but long enough to look at" * 100)
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    for name in ("text.db", "other.db"):
        with pytest.raises(Exception, match="not a Munjang library|damaged"):
            opened(encoder, name)


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"id": "a"}, InputError),
        ({"text": 3}, InputError),
        ({"text": " "}, TextError),
        ({"text": "a", "id": ""}, InputError),
        ({"text": "a", "id": "\x00"}, InputError),
        ({"text": "a", "id": "x" * 2_000}, InputError),
        ({"text": "a", "id": "\ud800"}, InputError),
        ({"text": "a", "x": float("nan")}, InputError),
        ({"text": "a", "x": object()}, InputError),
        ({"text": "a", "x": "y" * 2**21}, InputError),
        (3, InputError),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(library, record, error):
    with pytest.raises(error, match="record 2"):
        library.add(["fine", record])
    assert library.check() == []


def test_texts_and_metadata_are_found_in_any_normal_form(library):
    library.add([{"id": "a", "text": "\u1112\u1161\u11ab\u1100\u1173\u11af", "tag": "\u1112\u1161\u11ab"}])
    assert library.get(["a"])[0].text == "한글"
    assert ids(library.search("한글", where="tag = '한'")) == ["a"]
    assert ids(library.search("한글", where="tag = '\u1112\u1161\u11ab'", by="words")) == ["a"]


WORDS = [f"w{i}" for i in range(12)]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=st.dictionaries(st.sampled_from("abcdefghij"), TEXTS, min_size=1),
    query=TEXTS,
    k=st.integers(1, 9),
    gone=st.sets(st.sampled_from("abcdefghij")),
)
def test_search_is_brute_force_and_k_is_a_prefix_of_k_plus_one(tmp_path_factory, make_encoder, texts, query, k, gone):
    encoder = make_encoder()
    with Library.open(tmp_path_factory.mktemp("lib") / "a.db", encoder, analyser="bigrams") as library:
        library.add({"id": id, "text": text} for id, text in texts.items())
        library.search(query)
        library.remove(gone)
        left = {id: text for id, text in texts.items() if id not in gone}
        hits = library.search(query, k=k, by="meaning")
        assert len(hits) == min(k, len(left))
        q = encoder.encode([query])[0]
        cosines = {
            id: float(v @ q / np.linalg.norm(v) / np.linalg.norm(q)) for id, v in zip(left, encoder.encode(left.values()), strict=True)
        }
        np.testing.assert_allclose([hit.score for hit in hits], sorted(cosines.values(), reverse=True)[:k], atol=1e-5)
        assert all(abs(cosines[hit.id] - hit.score) < 1e-5 for hit in hits)
        assert library.search(query, k=k + 1, by="meaning")[:k] == hits
        assert library.search(query, k=k + 1)[:k] == library.search(query, k=k)
