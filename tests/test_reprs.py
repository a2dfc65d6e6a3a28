"""Whatever a person meets at the Python prompt says what it is in one line: no dumped arrays, no whole texts, no secrets."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.public_names import public_classes

from munjang import LateReranker, Library, SentenceEncoder, cluster, extract_keywords, fit_topics
from munjang.data.rows import ScoredPair
from munjang.evaluate.sts import evaluate_sts
from munjang.library.index_config import Tuning
from munjang.library.pg_connections import Address, PostgresConnections
from munjang.library.pgvector_store import PgvectorStore
from munjang.wording import LONGEST_REPR

TEXTS = ["the rain is in the river", "비가 많이 온다", "cat", "a dog was on the train", "눈이 올까요?", "the winter book of the cat " * 40]
DATACLASSES = [cls for cls in public_classes() if is_dataclass(cls)]
WITH_OWN_REPR = ("Clustering", "Pairs", "SimilarityCurve", "TopicModel")
"""Dataclasses whose repr is counted from their content, and is tried on real ones below."""


def is_one_short_line(said: str) -> bool:
    return len(said) < LONGEST_REPR and said.isprintable() and " object at 0x" not in said and "array(" not in said


def test_the_walk_finds_what_people_use() -> None:
    names = {cls.__name__ for cls in public_classes()}
    assert names >= {
        "SentenceEncoder",
        "CrossEncoder",
        "Library",
        "Hit",
        "AddReport",
        "Info",
        "TopicModel",
        "Clustering",
        "Keyword",
        "Calibration",
    }
    assert names >= {"StsResult", "RetrievalResult", "Matched", "MinedPairs", "BulkReport", "TrainResult", "Encoded", "Document", "Record"}


@pytest.mark.parametrize("cls", [cls for cls in DATACLASSES if cls.__name__ not in WITH_OWN_REPR], ids=lambda cls: cls.__name__)
def test_a_result_that_holds_very_much_still_has_a_short_repr(cls: type[Any]) -> None:
    filled = object.__new__(cls)
    for field in fields(cls):
        object.__setattr__(filled, field.name, _very_much(str(field.type)))
    assert is_one_short_line(repr(filled)), repr(filled)
    assert repr(filled).startswith(cls.__name__ + "(")


def _very_much(annotation: str) -> Any:
    if re.match(r"(dict|Mapping|Judgements|Metadata)", annotation):
        return {f"key {number}": 0.123456789 for number in range(1_000)}
    if re.match(r"(tuple|list|Sequence|frozenset)", annotation):
        return ("a long text\n" * 100,) * 10_000
    if annotation.startswith("bool"):
        return True
    if annotation.startswith("int"):
        return 10**12
    if annotation.startswith("float"):
        return 1 / 3
    if re.match(r"(str|Path|Literal|Method)", annotation):
        return "a long text\n" * 1_000
    return np.zeros((1_000, 384), dtype=np.float32)


@pytest.mark.parametrize("cls", [cls for cls in public_classes() if not is_dataclass(cls)], ids=lambda cls: cls.__name__)
def test_no_public_class_is_shown_by_its_address(cls: type) -> None:
    has_no_objects = getattr(cls, "_is_protocol", False) or inspect.isabstract(cls)
    assert has_no_objects or cls.__repr__ is not object.__repr__


@pytest.fixture(scope="module")
def encoder(tiny_bert_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


@pytest.fixture
def library(encoder: SentenceEncoder, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "news.db", encoder) as made:
        made.add([{"id": str(number), "text": text, "year": 2020} for number, text in enumerate(TEXTS)])
        yield made


def test_models_say_their_name_and_size(encoder: SentenceEncoder, tiny_bert_folder: Path) -> None:
    assert (
        repr(encoder)
        == f"SentenceEncoder('{tiny_bert_folder.name}', 32 dimensions, {encoder.engine.layers} layers, float32, at most 24 tokens)"
    )
    assert repr(LateReranker(encoder)) == f"LateReranker('{tiny_bert_folder.name}', float32, at most 24 tokens)"


def test_all_that_models_return_is_short(encoder: SentenceEncoder) -> None:
    made = [encoder.encode_with_report(TEXTS), *encoder.encode_tokens(TEXTS[:2]), encoder.folder]
    assert [repr(each) for each in made if not is_one_short_line(repr(each))] == []


def test_a_library_and_all_it_returns_is_short(library: Library) -> None:
    assert repr(library).startswith("Library('")
    assert is_one_short_line(repr(library.store))
    hits = library.search("cat", k=6, explain=True)
    made = [library, library.info(), library.add(["rain"]), *hits, *(hit.explanation for hit in hits), *library.get(["1", "5"])]
    assert [repr(each) for each in made if not is_one_short_line(repr(each))] == []
    assert "score=" in repr(hits[0])


def test_a_closed_library_still_has_a_repr(library: Library) -> None:
    library.close()
    assert repr(library).startswith("Library('")


def test_analyses_are_short(encoder: SentenceEncoder) -> None:
    texts = [f"{text} {number}" for number in range(8) for text in TEXTS[:5]]
    vectors = encoder.encode(texts)
    topics = fit_topics(texts, encoder=encoder, vectors=vectors, min_size=2)
    assert repr(cluster(vectors)).startswith("Clustering(")
    assert repr(topics).startswith("TopicModel(")
    made = [cluster(vectors), topics, topics.settings, topics.documents, *topics.topics, *extract_keywords(texts[:2], encoder)[0]]
    assert [repr(each) for each in made if not is_one_short_line(repr(each))] == []


def test_scores_stand_in_the_repr_of_an_evaluation(encoder: SentenceEncoder) -> None:
    pairs = [ScoredPair(a, b, 0.1 * at) for at, (a, b) in enumerate(itertools.pairwise(TEXTS[:5]))]
    found = evaluate_sts(encoder, pairs, resamples=10)
    assert is_one_short_line(repr(found))
    assert "pearson_cosine: " in repr(found)


def test_the_password_of_a_postgresql_library_is_never_shown() -> None:
    address = Address.parse("postgresql://me:hunter2@host/db?password=hunter3#news")
    store = PgvectorStore(PostgresConnections(address), "uuid")
    library = Library(store, None, folder=None, tuning=Tuning())
    for each in (address, store, library):
        assert "hunter" not in repr(each)
        assert "host/db" in repr(each)
