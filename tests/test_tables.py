"""Results are tables: the same rows as dicts, as data frames of pandas and polars, and as HTML that holds texts as data."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.public_names import public_classes

import munjang
from munjang import Library, SentenceEncoder
from munjang.data.rows import ScoredPair, Triplet
from munjang.library.results import Hit, Hits
from munjang.tables import SHOWN_ROWS, SHOWN_TEXT, Table, write_html
from munjang.text.tagging import choose_tagger

TEXTS = ["the rain is in the river", "비가 많이 온다", "cat", "a dog was on the train", "눈이 올까요?", "the winter book", "cat"]
HOSTILE = '</td></table><script>alert(1)</script><img src=x onerror=alert(2)> " onmouseover="alert(3) \x00\ud800'
VECTORS = np.random.default_rng(0).standard_normal((len(TEXTS), 8)).astype(np.float32)
PLAIN = choose_tagger("plain")


def fit_topics() -> munjang.TopicModel:
    return munjang.fit_topics(TEXTS, vectors=VECTORS, topics=2, min_size=1, by=PLAIN)


def evaluate_sts(model: SentenceEncoder) -> Table:
    return munjang.evaluate_sts(model, [ScoredPair(a, b, at) for at, (a, b) in enumerate(pairwise(TEXTS))], resamples=20)


MADE: dict[str, Callable[[SentenceEncoder], Table]] = {
    "Keywords": lambda model: munjang.extract_keywords(TEXTS, model, by=PLAIN),
    "Clustering": lambda model: munjang.cluster(VECTORS, k=2),
    "TopicModel": lambda model: fit_topics(),
    "Assigned": lambda model: fit_topics().assigned,
    "Slices": lambda model: munjang.topics_over_time(fit_topics(), range(len(TEXTS))),
    "Matched": lambda model: munjang.match(VECTORS[:3], VECTORS[3:]),
    "MinedPairs": lambda model: munjang.mine_pairs(VECTORS, threshold=-1.0),
    "Deduped": lambda model: munjang.dedupe(VECTORS[[0, 1, 0, 2]]),
    "TextLabels": lambda model: munjang.classify_texts(TEXTS, ["weather", "animals"], model),
    "PairScores": lambda model: munjang.LateReranker(model).predict_with_report([("rain", text) for text in TEXTS]),
    "Ranking": lambda model: munjang.LateReranker(model).rank("rain", TEXTS),
    "Morphology": lambda model: munjang.analyse(["비가 많이 온다."])[0],
    "StsResult": evaluate_sts,
    "NamedScores": lambda model: munjang.evaluate_triplets(model, [Triplet(*TEXTS[:3])], resamples=20),
    "LabelReport": lambda model: munjang.evaluate_labels([[0.9, 0.1], [0.2, 0.8]], ["a", "b"], ["a", "b"], resamples=10),
    "TextMap": lambda model: munjang.draw_map(munjang.lay_out(VECTORS), TEXTS, groups=[0, 0, 1, 1, -1, 2, 2]),
}
"""One of every table, made by the function that people call."""
OTHERS = {"PairsResult", "RetrievalResult", "Hits", "Table", "ScoreTable"}
"""Tables that share their code with those above, or are tried on their own below."""


class Reader(HTMLParser):
    """What a browser would see: the tags with the names of their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str) -> int:
        return sum(each == tag for each, _ in self.tags)


@pytest.fixture(scope="module")
def made(tiny_bert_folder: Path) -> Callable[[str], Any]:
    model, known = SentenceEncoder.load(tiny_bert_folder), dict[str, Table]()

    def make(name: str) -> Table:
        if name == "Morphology":
            pytest.importorskip("kiwipiepy")
        if name not in known:
            known[name] = MADE[name](model)
        return known[name]

    return make


def test_every_public_table_is_tried() -> None:
    assert {cls.__name__ for cls in public_classes() if issubclass(cls, Table)} <= set(MADE) | OTHERS
    assert not inspect.isabstract(Hits)


@pytest.mark.parametrize("name", MADE)
def test_rows_have_the_columns_that_the_class_names_first(name: str, made: Callable[[str], Any]) -> None:
    rows = made(name).to_rows()
    assert type(made(name)).__name__ == name
    assert rows
    assert all(list(row) == list(rows[0]) for row in rows)
    assert tuple(rows[0])[: len(made(name).columns)] == made(name).columns
    json.dumps(rows)  # plain numbers and texts, no arrays


@pytest.mark.parametrize("name", MADE)
def test_data_frames_hold_the_rows(name: str, made: Callable[[str], Any]) -> None:
    rows, polars, pandas = made(name).to_rows(), made(name).to_polars(), made(name).to_pandas()
    assert polars.to_dicts() == rows
    assert list(pandas.columns) == polars.columns == list(rows[0])
    for column in pandas.columns:
        for value, row in zip(pandas[column].tolist(), rows, strict=True):
            assert value == row[column] or (row[column] is None and value != value)  # a missing number is NaN in pandas
    assert made(name).to_pandas(index=[f"row {at}" for at in range(len(rows))]).index[0] == "row 0"


@pytest.mark.parametrize("name", MADE)
def test_a_notebook_shows_the_first_rows(name: str, made: Callable[[str], Any]) -> None:
    rows, seen = made(name).to_rows(), Reader(made(name)._repr_html_())
    assert seen.count("circle" if name == "TextMap" else "tr") == (len(TEXTS) if name == "TextMap" else 1 + min(SHOWN_ROWS, len(rows)))
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in seen.tags}


def test_hits_are_a_list_and_a_table(tiny_bert_folder: Path, tmp_path: Path) -> None:
    with Library.open(tmp_path / "news.db", SentenceEncoder.load(tiny_bert_folder)) as library:
        library.add([{"id": str(at), "text": text, "year": 2020 + at, "score": "own"} for at, text in enumerate(TEXTS)])
        hits = library.search("cat", k=3)
        assert isinstance(hits, list)
        assert all(isinstance(hit, Hit) for hit in hits)
        assert hits.to_rows()[0] == {
            "id": hits[0].id,
            "score": hits[0].score,
            "passage": hits[0].passage,
            "citation": None,
            "text": hits[0].text,
            "year": hits[0].metadata["year"],
            "metadata_score": "own",
        }
        assert hits.to_polars().height == len(hits.to_pandas()) == 3
        assert [type(each) for each in library.search_many(["cat", "rain"], k=1)] == [Hits, Hits]


def test_hits_with_metadata_of_different_kinds_are_one_frame() -> None:
    kinds: list[dict[str, Any]] = [{"year": 1}, {"year": "old", "tags": ["a"]}, {"year": None}]
    hits = Hits(Hit(id="a", score=0.5, text="t", metadata=own, start=0, stop=1) for own in kinds)
    assert hits.to_pandas()["year"].tolist()[:2] == [1, "old"]
    assert hits.to_polars()["year"].to_list() == ["1", "old", None]
    assert [row["tags"] for row in hits.to_rows()] == [None, ["a"], None]


def test_an_empty_answer_has_its_columns() -> None:
    assert list(Hits().to_pandas().columns) == Hits().to_polars().columns == ["id", "score", "passage", "citation", "text"]
    assert "Hits: 0 rows" in Hits()._repr_html_()


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3, unique=True))
def test_texts_are_data_in_the_html(texts: list[str], names: list[str]) -> None:
    seen = Reader(write_html([dict.fromkeys(names, text) for text in texts]))
    plain = Reader(write_html([{f"column {at}": "x" for at in range(len(names))} for _ in texts]))
    assert [tag for tag, _ in seen.tags] == [tag for tag, _ in plain.tags]


def test_hostile_texts_neither_become_markup_nor_leave_an_attribute() -> None:
    rows: list[dict[str, Any]] = [{HOSTILE: HOSTILE * 5, "score": 0.5, "list": [HOSTILE, HOSTILE]}]
    drawn = munjang.draw_map([[0, 1]], [HOSTILE], groups=[HOSTILE], names=[HOSTILE], title=HOSTILE)
    for html in (write_html(rows, bars=["score"], title=HOSTILE), drawn._repr_html_()):
        html.encode()  # a lone surrogate would fit in no file
        seen = Reader(html)
        assert not {"script", "img"} & {tag for tag, _ in seen.tags}
        assert not [name for _, names in seen.tags for name in names if name.startswith("on")]
        assert len(seen.text) < 10 * SHOWN_TEXT


def test_bars_are_shares_of_the_largest_and_what_is_no_number_has_none() -> None:
    html = write_html([{"score": 0.8}, {"score": 0.4}, {"score": -1.0}, {"score": float("nan")}, {"score": None}], bars=["score"])
    assert [part.split("%")[0] for part in html.split("rgba(37,99,235,.28) ")[1:]] == ["100.0", "50.0", "0.0"]
    assert "nan" in html


def test_a_notebook_leaves_out_columns_without_values_and_whole_texts() -> None:
    html = Hits([Hit(id="a", score=0.5, text="before it rains", metadata={"year": None}, start=7, stop=9)])._repr_html_()
    assert [html.count(f">{name}<") for name in ("id", "score", "passage", "citation", "text", "year", "before it rains")] == [
        1,
        1,
        1,
        0,
        0,
        0,
        0,
    ]


def test_rows_beyond_the_first_are_counted() -> None:
    assert "… 3 more rows" in write_html([{"n": at} for at in range(SHOWN_ROWS + 3)])


def test_a_group_that_is_missing_is_none() -> None:
    drawn = munjang.draw_map(np.eye(4)[:, :2], list("abcd"), groups=[None, float("nan"), -1, 0], names=["w", "x", "y", "z"])
    assert [row["group"] for row in drawn.to_rows()] == [None, None, None, "0"]


def test_a_map_of_many_texts_says_how_many_it_draws(tmp_path: Path) -> None:
    drawn = munjang.draw_map(np.random.default_rng(0).random((5_000, 2)), [str(at) for at in range(5_000)])
    html = drawn._repr_html_()
    assert 1_000 < html.count("<circle") <= 2_000
    assert "one in 3 of 5,000 points" in html
    drawn.save(tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("places", "texts", "more"),
    [([[0, 0]], ["a", "b"], {}), ([[0, 2]], ["a"], {}), ([[0, 0]], "a", {}), ([[0, 0]], [None], {}), ([[0, 0]], ["a"], {"groups": [1, 2]})],
)
def test_a_map_refuses_what_does_not_fit(places: Any, texts: Any, more: dict[str, Any]) -> None:
    with pytest.raises(munjang.UsageError, match="expected|outside"):
        munjang.draw_map(places, texts, **more)


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_neither_frame_library_is_imported_unasked() -> None:
    asked = "import sys; from munjang.library.results import Hits; Hits()._repr_html_(); print({'pandas', 'polars'} & set(sys.modules))"
    assert run_python(asked) == "set()\n"


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_frame_library_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(munjang.UsageError, match=rf"a {name} data frame needs {name}.*\n  pip install {name}"):
        getattr(Hits(), f"to_{name}")()
    assert "<table" in Hits()._repr_html_()
