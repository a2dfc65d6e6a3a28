"""A model's name where a loaded model belongs: refused at every public entry, with the call that loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.data.rows import LabelledPair, LabelledText, RetrievalTask, ScoredPair, TextPair, Triplet
from munjang.errors import UsageError
from munjang.types import check_encoder, check_scorer

NAME: Any = "ko-en-small"
TASK = RetrievalTask({"d": "snow"}, {"q": "rain"}, {"q": {"d": 1}})
RUN = {"q": {"d": 1.0}}
SCORED, LABELLED = [ScoredPair("a", "b", 0.5), ScoredPair("c", "d", 1.0)], [LabelledPair("a", "b", "1"), LabelledPair("c", "d", "0")]


class Fake:
    """Has all that an entry looks at before it encodes."""

    dimension, fingerprint, max_length, name = 4, "f", 8, "fake"

    def encode(self, texts: Any, /) -> Any:
        raise AssertionError("nothing is encoded before both models are checked")


def entries() -> dict[str, Callable[[Path], object]]:
    from munjang import Library, export_onnx, extract_keywords, fit_topics
    from munjang.evaluate import (
        clustering,
        compare,
        nli,
        pairs,
        rerank,
        retrieval,
        sts,
        translation,
        triplets,
    )
    from munjang.models.inspect import compare_tokens, inspect_text
    from munjang.train.augment import label_by_cosine, label_pairs, sample_pairs
    from munjang.train.mine import mine_negatives

    fake: Any = Fake()
    return {
        "Library.open": lambda folder: Library.open(folder / "x.db", NAME),
        "Library.open, queries": lambda folder: Library.open(folder / "x.db", fake, query_encoder=NAME),
        "extract_keywords": lambda _: extract_keywords(["rain"], NAME),
        "fit_topics": lambda _: fit_topics(["rain", "snow"], encoder=NAME),
        "export_onnx": lambda folder: export_onnx(NAME, folder / "out"),
        "inspect_text": lambda _: inspect_text(NAME, "rain"),
        "compare_tokens": lambda _: compare_tokens(NAME, "rain", "snow"),
        "evaluate_clustering": lambda _: clustering.evaluate_clustering(NAME, [LabelledText("rain", "a"), LabelledText("snow", "b")]),
        "compare_sts": lambda _: compare.compare_sts(fake, NAME, SCORED),
        "compare_pairs": lambda _: compare.compare_pairs(fake, NAME, LABELLED),
        "compare_retrieval": lambda _: compare.compare_retrieval(fake, NAME, TASK),
        "cosine_scorer": lambda _: rerank.make_cosine_scorer(NAME, TASK, RUN, depth=1),
        "evaluate_mse": lambda _: translation.evaluate_mse(fake, NAME, [TextPair("a", "b")]),
        "evaluate_nli": lambda _: nli.evaluate_nli(NAME, LABELLED, labels=["0", "1"]),
        "evaluate_pairs": lambda _: pairs.evaluate_pairs(NAME, LABELLED),
        "evaluate_rerank": lambda _: rerank.evaluate_rerank(NAME, TASK, RUN),
        "evaluate_retrieval": lambda _: retrieval.evaluate_retrieval(NAME, TASK),
        "evaluate_sts": lambda _: sts.evaluate_sts(NAME, SCORED),
        "evaluate_sts_scores": lambda _: sts.evaluate_sts_scores(NAME, SCORED),
        "evaluate_translation": lambda _: translation.evaluate_translation(NAME, [TextPair("a", "b")]),
        "evaluate_triplets": lambda _: triplets.evaluate_triplets(NAME, [Triplet("a", "b", "c")]),
        "mine_negatives": lambda _: mine_negatives(NAME, [TextPair("a", "b")]),
        "sample_pairs": lambda _: sample_pairs(["a", "b"], encoder=NAME),
        "label_pairs": lambda _: label_pairs(NAME, [("a", "b")]),
        "label_by_cosine": lambda _: label_by_cosine(NAME, [("a", "b")]),
    }


@pytest.mark.parametrize("entry", list(entries()))
def test_a_name_is_refused_with_the_call_that_loads_the_model(entry: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"(Sentence|Cross)Encoder\.load\('ko-en-small'\)"):
        entries()[entry](tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_library_refuses_names_of_models_in_use(tmp_path: Path) -> None:
    from munjang import Library

    with Library.open(tmp_path / "x.db", Fake()) as library:  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"rerank is the text 'ko-en-rerank'.*\n.*CrossEncoder\.load\('ko-en-rerank'\)"):
            library.search("rain", rerank="ko-en-rerank")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"SentenceEncoder\.load"):
            library.reencode(NAME)


def test_paths_classes_and_nothing_are_refused_too() -> None:
    with pytest.raises(UsageError, match=r"encoder is the path 'models/x'"):
        check_encoder(Path("models/x"))
    with pytest.raises(UsageError, match=r"teacher is None, which has no encode\(\)"):
        check_encoder(None, "teacher")
    with pytest.raises(UsageError, match=r"scorer is a Fake, which has no predict\(\)"):
        check_scorer(Fake())
    check_encoder(Fake())
