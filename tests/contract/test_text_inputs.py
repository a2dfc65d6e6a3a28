"""Every verb that takes texts does the right thing with what it is handed, or says what to do: never characters, keys or column names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import write_cross_encoder
from tests.contract.text_inputs import KINDS, PAGES, TEXTS, Group, Kind, with_table

from munjang import CrossEncoder, Library, SentenceEncoder, cluster, extract_keywords, fit_topics, similarity, top_k
from munjang.adapters.loading import Texts
from munjang.analyze.dedupe import dedupe
from munjang.analyze.keywords import find_cluster_phrases
from munjang.analyze.pairs import mine_pairs
from munjang.analyze.topics.assign import assign_topics, compute_distribution
from munjang.analyze.topics.edit import update_topics
from munjang.errors import InputError, UsageError
from munjang.evaluate.compare import compare_pairs, compare_sts
from munjang.evaluate.nli import evaluate_nli
from munjang.evaluate.pairs import evaluate_pairs
from munjang.evaluate.sts import evaluate_sts
from munjang.evaluate.translation import evaluate_mse, evaluate_translation
from munjang.evaluate.triplets import evaluate_triplets
from munjang.models.compress.parts import reduce_dimension
from munjang.models.compress.vocabulary import prune_vocabulary
from munjang.models.cross_vs_bi_timing import time_all_pairs
from munjang.models.inspect import inspect_text
from munjang.text.tagging import choose_tagger
from munjang.train.augment import sample_pairs

pytest.importorskip("pandas")
pytest.importorskip("polars")

Verb = Callable[[Any], Any]


@pytest.fixture(scope="module")
def model(tiny_bert_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    folder = tmp_path_factory.mktemp("cross")
    write_cross_encoder(folder, labels=1)
    return CrossEncoder.load(folder)


@pytest.fixture(scope="module")
def library(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with Library.open(tmp_path_factory.mktemp("library") / "a.db", model, analyser="bigrams") as opened:
        opened.add([{"id": text, "text": text} for text in TEXTS])
        opened.add([{"id": id, "text": text} for id, text in zip("abc", TEXTS, strict=True)])
        yield opened


@pytest.fixture(scope="module")
def verbs(model: SentenceEncoder, scorer: CrossEncoder, library: Library, tiny_bert_folder: Path, tmp_path_factory: Any) -> dict[str, Verb]:
    plain = choose_tagger("plain")
    topics = fit_topics(TEXTS * 4, encoder=model, by=plain)
    target = tmp_path_factory.mktemp("made")
    count = iter(range(10_000))
    three = np.eye(3, dtype=np.float32)
    return {
        "encode": model.encode,
        "encode_query": model.encode_query,
        "encode_document": model.encode_document,
        "encode_with_report": model.encode_with_report,
        "encode_stream": lambda texts: list(model.encode_stream(texts)),
        "encode_tokens": model.encode_tokens,
        "count_tokens": model.count_tokens,
        "rank": lambda texts: scorer.rank("rain", texts),
        "search_many": library.search_many,
        "extract_keywords": lambda texts: extract_keywords(texts, model, by=plain),
        "fit_topics": lambda texts: fit_topics(texts, encoder=model, by=plain),
        "update_topics": lambda texts: update_topics(topics, texts, encoder=model, by=plain),
        "assign_topics": lambda texts: assign_topics(topics, texts, encoder=model),
        "topic_distribution": lambda texts: compute_distribution(topics, texts, by=plain),
        "cluster_phrases": lambda texts: find_cluster_phrases(texts, [0, 0, 1], by=plain),
        "dedupe": lambda texts: dedupe(three, texts=texts if texts is not None else 0),  # None is no texts at all, which is allowed
        "mine_pairs": lambda texts: mine_pairs(three, texts=texts if texts is not None else 0),
        "adapters": lambda texts: Texts(model).vectors(texts),
        "time_all_pairs": lambda texts: time_all_pairs(model, scorer, texts, seconds=0.01),
        "reduce_dimension": lambda texts: reduce_dimension(tiny_bert_folder, target / f"r{next(count)}", texts, dimension=2),
        "prune_vocabulary": lambda texts: prune_vocabulary(tiny_bert_folder, target / f"p{next(count)}", texts),
        "sample_pairs": lambda texts: sample_pairs(texts, strategy="bm25"),
        "add": library.add,
        "predict": scorer.predict,
        "predict_with_report": scorer.predict_with_report,
        "search": library.search,
        "rank a query": lambda text: scorer.rank(text, TEXTS),
        "inspect_text": lambda text: inspect_text(model, text),
        "get": library.get,
        "remove": library.remove,
        "search like": lambda ids: library.search("rain", like=ids),
        "update": library.update,
    }


GROUP_OF: dict[str, Group] = {
    **dict.fromkeys(("encode", "encode_query", "encode_document"), "one or several"),
    **dict.fromkeys(("encode_with_report", "encode_stream", "encode_tokens", "count_tokens", "rank", "search_many"), "several"),
    **dict.fromkeys(("extract_keywords", "fit_topics", "update_topics", "assign_topics", "topic_distribution"), "several"),
    **dict.fromkeys(("cluster_phrases", "dedupe", "mine_pairs", "adapters", "time_all_pairs", "reduce_dimension"), "several"),
    **dict.fromkeys(("prune_vocabulary", "sample_pairs"), "several"),
    **dict.fromkeys(("add", "update"), "records"),
    **dict.fromkeys(("predict", "predict_with_report"), "pairs"),
    **dict.fromkeys(("search", "rank a query", "inspect_text"), "one"),
    **dict.fromkeys(("get", "remove", "search like"), "ids"),
}


def fill(library: Library) -> None:
    """Put back what a verb may have removed or changed."""
    library.add([{"id": text, "text": text} for text in TEXTS] + [{"id": id, "text": "rain"} for id in "abc"])


def find_fault(verb: Verb, kind: Kind, *, is_taken: bool) -> str | None:
    """Return what is wrong with a verb's answer to a kind of input, None if nothing is."""
    try:
        verb(kind.make())
    except (UsageError, InputError) as error:
        if is_taken:
            # `update` reads its records and then finds that there are no documents with their ids
            return None if isinstance(error, InputError) and "there is no document" in str(error) else f"refused: {error}"
        return None if "expected" in str(error) or "first" in str(error) else f"does not say what to do: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if is_taken else "taken"


@pytest.mark.parametrize("verb", GROUP_OF)
def test_a_verb_takes_each_kind_of_input_or_says_what_to_do(verbs: dict[str, Verb], library: Library, verb: str) -> None:
    faults = {}
    for kind in KINDS:
        if GROUP_OF[verb] in ("ids", "records"):
            fill(library)
        faults[kind.en] = find_fault(verbs[verb], kind, is_taken=GROUP_OF[verb] in kind.taken)
    assert {kind: fault for kind, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("language", PAGES)
def test_the_pages_show_the_table_that_is_held_to(language: str) -> None:
    page = PAGES[language].read_text(encoding="utf-8")
    assert page == with_table(page, language), "python -m tests.contract.text_inputs writes the tables anew"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "several" in kind.taken], ids=lambda kind: kind.en)
def test_equal_texts_have_equal_vectors_whatever_they_come_in(model: SentenceEncoder, kind: Kind) -> None:
    assert np.array_equal(model.encode(kind.make()), model.encode(TEXTS))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a pandas DataFrame", 'texts is a DataFrame, expected a list of texts\n  name the column that holds them, such as df["text"]'),
        ("a dict", "texts is a dict, expected a list of texts\n  give its values, list(mapping.values()), or put it in a list"),
        ("a set", "texts is a set, whose order is arbitrary, expected a list of texts\n  give them an order, such as sorted(…)"),
        ("bytes", "texts is bytes, expected a list of texts\n  decode bytes first, such as with .decode('utf-8')"),
        ("a number", "texts is 3 (int), expected a list of texts"),
        ("a polars Series with a missing value", "texts[1] is None, expected a text (str)\n  drop or fill what is missing first"),
        ("a pandas Series with a missing value", "texts[1] is missing (nan), expected a text (str)\n  drop or fill what is missing first"),
        ("a list of bytes", "texts[0] is bytes, expected a text (str)\n  decode it first, such as with .decode('utf-8')"),
    ],
)
def test_a_refusal_says_what_was_found_and_what_to_do(model: SentenceEncoder, given: str, words: str) -> None:
    kind = next(kind for kind in KINDS if kind.en == given)
    with pytest.raises(UsageError) as refused:
        model.encode(kind.make())
    assert str(refused.value).startswith(words)


def test_a_wrong_text_is_named_by_its_place_in_the_whole_stream(model: SentenceEncoder) -> None:
    with pytest.raises(UsageError, match=r"texts\[5\] is 5 \(int\)"):
        list(model.encode_stream((text for text in [*"abcde", 5]), block=2))


def test_a_stream_is_read_only_as_far_as_it_is_asked_for(model: SentenceEncoder) -> None:
    taken: list[str] = []

    def endless() -> Iterator[str]:
        while True:
            taken.append("rain")
            yield "rain"

    next(model.encode_stream(endless(), block=3))
    assert len(taken) == 3


@pytest.mark.parametrize("given", [["rain", "snow"], [("a", "b")], "rain", {"a": 1}, None, 3], ids=str)
@pytest.mark.parametrize(
    "evaluate",
    [
        lambda model, rows: evaluate_sts(model, rows),
        lambda model, rows: evaluate_pairs(model, rows),
        lambda model, rows: evaluate_triplets(model, rows),
        lambda model, rows: evaluate_translation(model, rows),
        lambda model, rows: evaluate_mse(model, model, rows),
        lambda model, rows: evaluate_nli(model, rows, labels=("a", "b")),
        lambda model, rows: compare_sts(model, model, rows),
        lambda model, rows: compare_pairs(model, model, rows),
    ],
    ids=["sts", "pairs", "triplets", "translation", "mse", "nli", "compare_sts", "compare_pairs"],
)
def test_evaluations_refuse_rows_that_do_not_say_which_text_is_which(model: SentenceEncoder, evaluate: Any, given: Any) -> None:
    with pytest.raises(UsageError, match="expected a"):
        evaluate(model, given)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.en)
@pytest.mark.parametrize(
    "verb", [similarity, lambda a, b: top_k(a, b, k=1), lambda a, _: cluster(a)], ids=["similarity", "top_k", "cluster"]
)
def test_verbs_of_vectors_refuse_texts(verb: Callable[[Any, Any], Any], kind: Kind) -> None:
    if kind.en == "a number":
        return  # numbers are what these take; a shape is checked elsewhere
    with pytest.raises(UsageError, match="expected numbers of shape"):
        verb(kind.make(), kind.make())


def test_neither_pandas_nor_polars_is_imported() -> None:
    code = "import sys, munjang.library.library, munjang.models.sentence_encoder; assert not {'pandas', 'polars'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
