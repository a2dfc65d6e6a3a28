"""A library with token vectors: kept in the same commits, used by searches, and refused where they cannot be right."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from munjang.errors import DamagedFile, UsageError
from munjang.library.copying import copy_library
from munjang.library.index_config import Tuning
from munjang.library.library import Library
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.vectors.maxsim import SKIP, WEIGHT, WEIGHT_AFTER_MEANING, maxsim_exact

TEXTS = {
    "a": "the cat sat on the mat",
    "b": "rain in winter and snow",
    "c": "the dog ran in the park",
    "d": "a film about the sea",
    "e": "snow fell on the sea",
}


@pytest.fixture(scope="module")
def model(tiny_bert_folder) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


def records(**texts: str) -> list[dict[str, str]]:
    return [{"id": id, "text": text} for id, text in (texts or TEXTS).items()]


@pytest.fixture
def late(opened, model) -> Library:
    library = opened(model, token_vectors="int8")
    library.add(records())
    return library


def codes_by_id(library: Library) -> dict[str, tuple[bytes, ...] | None]:
    return {entry.document.id: entry.token_codes for block in library.store.entries(tokens=True) for entry in block}


def test_a_search_is_re_ranked_by_maxsim_and_says_so(late, model):
    def rows(text: str) -> np.ndarray:
        return model.encode_tokens([text], skip=SKIP)[0].vectors

    hits = late.search("snow in winter", k=5)
    assert {(hit.scored_by, hit.reranked) for hit in hits} == {("late", True)}
    first = {hit.id: hit.score for hit in late.search("snow in winter", k=5, rerank=False, by="meaning")}
    exact = dict(zip(TEXTS, maxsim_exact(rows("snow in winter"), [rows(text) for text in TEXTS.values()]), strict=True))
    for hit in late.search("snow in winter", k=5, by="meaning"):
        assert hit.score == pytest.approx(WEIGHT_AFTER_MEANING * exact[hit.id] + (1 - WEIGHT_AFTER_MEANING) * first[hit.id], abs=0.01)
    for hit in late.search("snow in winter", k=5, rerank_share=0.3, by="meaning"):
        assert hit.score == pytest.approx(0.3 * exact[hit.id] + 0.7 * first[hit.id], abs=0.01)
    both = {hit.id: hit.score for hit in late.search("snow in winter", k=5, rerank=False)}
    for hit in hits:
        assert hit.score == pytest.approx(WEIGHT * exact[hit.id] + (1 - WEIGHT) * both[hit.id], abs=0.01)
    alone = late.search("snow in winter", k=5, rerank="late", rerank_share=1)
    assert [hit.id for hit in alone] == sorted(exact, key=lambda id: -exact[id])
    assert late.search_many(["snow in winter"], k=5)[0] == hits
    assert [hit.scored_by for hit in late.search("snow", k=1, rerank=False)] == ["meaning and words"]
    assert [hit.scored_by for hit in late.search("snow", k=1, by="words")] == ["words"]
    assert late.info().token_vectors == "int8"


def test_adding_with_token_vectors_gives_the_same_vectors(late, opened, model):
    plain = opened(model, name="plain.db")
    plain.add(records())
    for one, other in zip(late.store.entries(), plain.store.entries(), strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine.vectors_PD, theirs.vectors_PD, atol=1e-6)
    assert plain.info().token_vectors is None


def test_codes_follow_updates_and_removals(late):
    before = codes_by_id(late)
    late.add(records(a="the cat ran", f="a new text"))
    late.remove(["b"])
    after = codes_by_id(late)
    assert sorted(after) == ["a", "c", "d", "e", "f"]
    assert None not in after.values()
    assert after["a"] != before["a"]
    assert after["c"] == before["c"]
    late.compact()
    assert late.check() == []


def test_an_explanation_says_which_word_met_which(late):
    [hit] = late.search("cat mat", k=1, where="id = 'a'", explain=True)
    assert hit.explanation is not None
    assert [match.query for match in hit.explanation.matches] == ["cat", "mat"]
    for match in hit.explanation.matches:
        assert hit.text[match.start : match.stop] == match.text
        assert -1.01 <= match.cosine <= 1.01
    assert hit.explanation.late is not None


def test_an_existing_library_gets_its_token_vectors_later(opened, model):
    library = opened(model, tuning=Tuning(batch_documents=2))
    library.add(records())
    made_now = library.search("snow", rerank="late")
    assert {(hit.scored_by, hit.reranked) for hit in made_now} == {("late", True)}
    assert library.search("snow", rerank=True) == made_now
    assert library.info().token_vectors is None
    with pytest.raises(UsageError, match="budget_seconds limits a cross-encoder"):
        library.search("snow", rerank=True, budget_seconds=1)
    with pytest.raises(UsageError, match="5 documents without token vectors"):
        opened(model, token_vectors="1bit")
    seen: list[int] = []
    assert library.add_token_vectors(progress=seen.append) == 5
    assert seen == [2, 2, 1]
    assert library.add_token_vectors() == 0
    assert library.search("snow") == made_now
    library.add(records(g="late again"))
    assert None not in codes_by_id(library).values()
    with pytest.raises(UsageError, match="keeps token vectors in 1bit"):
        opened(model, token_vectors="int8")
    assert opened(model, token_vectors="1bit").search("snow", k=2) == library.search("snow", k=2)


def test_half_made_token_vectors_are_not_used_until_they_are_finished(opened, model):
    class Stop(Exception):
        pass

    def stop(_: int) -> None:
        raise Stop

    library = opened(model, tuning=Tuning(batch_documents=2))
    library.add(records())
    plain = library.search("snow", k=3)
    with pytest.raises(Stop):
        library.add_token_vectors(progress=stop)
    assert library.search("snow", k=3) == plain
    assert library.check() == []
    assert library.add_token_vectors() == 3
    assert library.search("snow", k=3)[0].scored_by == "late"


def test_an_earlier_munjang_may_write_to_the_file(late, opened, model):
    """It knows nothing of the tables: it deletes passages, and adds some without codes."""
    expected = late.search("snow in winter", k=5)
    with closing(sqlite3.connect(late.store.path)) as connection, connection:
        row = connection.execute("SELECT row FROM passages JOIN documents ON number = document WHERE id = 'b'").fetchone()[0]
        connection.execute("DELETE FROM token_codes WHERE row = ?", (row,))  # as if it had added the document
    found = late.search("snow in winter", k=5)
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-6)
    with closing(sqlite3.connect(late.store.path)) as connection, connection:
        connection.execute("DELETE FROM words WHERE rowid IN (SELECT row FROM passages JOIN documents ON number = document WHERE id = 'a')")
        connection.execute("DELETE FROM vectors WHERE row IN (SELECT row FROM passages JOIN documents ON number = document WHERE id = 'a')")
        connection.execute("DELETE FROM passages WHERE document = (SELECT number FROM documents WHERE id = 'a')")
        connection.execute("DELETE FROM documents WHERE id = 'a'")
        assert connection.execute("SELECT count(*) FROM token_codes").fetchone()[0] == 3
    assert late.check() == []


def test_damaged_codes_are_noticed(late, opened, model):
    with closing(sqlite3.connect(late.store.path)) as connection, connection:
        connection.execute("UPDATE token_codes SET codes = zeroblob(length(codes)) WHERE row = (SELECT max(row) FROM token_codes)")
    assert any("token codes of passage" in each for each in late.check())
    with pytest.raises(DamagedFile):
        opened(model).search("snow", k=5)


def test_copies_and_new_models_keep_token_vectors(late, opened, model, tmp_path, tiny_folder):
    copy_library(late.store, tmp_path / "copy.db")
    copy = opened(model, name="copy.db")
    assert codes_by_id(copy) == codes_by_id(late)
    other = opened(model, name="other.db", token_vectors="int8")
    other.add(records(z="one more"))
    assert copy_library(late.store, tmp_path / "other.db") == 5
    assert other.search("snow", k=6)[0].scored_by == "late"
    plain = opened(model, name="plain.db")
    plain.add(records(y="plain"))
    with pytest.raises(UsageError, match="keeps token vectors"):
        copy_library(plain.store, tmp_path / "other.db")
    copy_library(late.store, tmp_path / "plain.db")
    assert plain.info().token_vectors is None
    before = codes_by_id(copy)
    copy.reencode(model.with_prompt("read: "))
    assert copy.info().token_vectors == "int8"
    assert codes_by_id(copy) != before
    assert copy.check() == []


def test_an_encoder_without_tokens_is_refused_where_they_are_kept(opened, encoder, model):
    with pytest.raises(UsageError, match="no vectors of tokens"):
        opened(encoder, token_vectors="1bit").add(records())
    with pytest.raises(UsageError, match="expected one of"):
        opened(model, name="b.db", token_vectors="3bit")


def test_a_first_add_that_stores_nothing_leaves_no_library(opened, model, tmp_path):
    library = opened(model, name="new.db", token_vectors="1bit")
    with pytest.raises(Exception, match="text"):
        library.add([{"id": "a"}])
    assert library.discard_new()
    assert not (tmp_path / "new.db").exists()
