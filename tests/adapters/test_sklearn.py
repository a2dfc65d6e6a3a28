"""The transformer in scikit-learn's own hands."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapters.conftest import SHORT, adapter, library

from munjang import SentenceEncoder
from munjang.errors import FolderError, UsageError

MunjangVectorizer = adapter("sklearn", needs="sklearn").MunjangVectorizer
checks = library("sklearn.utils.estimator_checks")
pipeline = library("sklearn.pipeline")
linear = library("sklearn.linear_model")
base = library("sklearn.base")
LABELS = [0, 0, 1, 1, 0, 1]
APPLY = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
]
"""scikit-learn's checks that do not hand over tables of numbers."""


@pytest.fixture
def vectorizer(tiny_bert_folder: Path) -> Any:
    return MunjangVectorizer(str(tiny_bert_folder))


@pytest.mark.parametrize("check", APPLY)
def test_it_passes_scikit_learns_own_check(vectorizer: Any, check: str) -> None:
    getattr(checks, check)("MunjangVectorizer", vectorizer)


def test_check_estimator_finds_nothing_wrong(vectorizer: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it cannot make texts
        found = checks.check_estimator(vectorizer, on_fail=None)
    assert {each["status"] for each in found} <= {"passed", "skipped"}
    assert any(each["status"] == "passed" for each in found)


def test_vectors_are_those_of_sentence_transformers(vectorizer: Any, tiny_bert_folder: Path, authority: Callable[..., np.ndarray]) -> None:
    found = vectorizer.fit_transform(SHORT)
    np.testing.assert_allclose(found, authority(tiny_bert_folder, SHORT), atol=1e-5)
    assert found.dtype == np.float32


def test_texts_may_come_as_a_list_a_series_an_array_or_one_column(vectorizer: Any) -> None:
    pandas = library("pandas")
    expected = vectorizer.transform(SHORT)
    shapes = [tuple(SHORT), iter(SHORT), np.array(SHORT), np.array(SHORT, object), np.array(SHORT)[:, None], pandas.Series(SHORT)]
    for texts in [*shapes, pandas.DataFrame({"text": SHORT})]:
        np.testing.assert_array_equal(vectorizer.transform(texts), expected)


@pytest.mark.parametrize(
    "wrong", ["one text", 5, np.zeros((3, 2)), [["nested"]], ["text", None], [1.5]], ids=["str", "int", "table", "nested", "none", "number"]
)
def test_what_is_no_list_of_texts_is_refused(vectorizer: Any, wrong: Any) -> None:
    with pytest.raises(UsageError):
        vectorizer.fit(SHORT).transform(wrong)


def test_rows_depend_neither_on_order_nor_on_company(vectorizer: Any) -> None:
    together = vectorizer.fit_transform(SHORT)
    np.testing.assert_allclose(vectorizer.transform(SHORT[::-1])[::-1], together, atol=2e-6)
    np.testing.assert_allclose(np.concatenate([vectorizer.transform([text]) for text in SHORT]), together, atol=2e-6)


def test_a_pipeline_learns_is_cloned_searched_and_pickled(vectorizer: Any, tiny_bert_folder: Path) -> None:
    steps = pipeline.make_pipeline(vectorizer, linear.LogisticRegression(C=1e6, max_iter=2000))
    assert steps.fit(SHORT, LABELS).predict(SHORT).tolist() == LABELS
    again = pickle.loads(pickle.dumps(steps))
    np.testing.assert_allclose(again.predict_proba(SHORT), steps.predict_proba(SHORT), atol=1e-6)
    assert len(pickle.dumps(steps)) < 20_000
    copied = base.clone(steps).set_params(munjangvectorizer__dimensions=8)
    assert copied.fit(SHORT, LABELS)[-1].n_features_in_ == 8
    search = library("sklearn.model_selection").GridSearchCV(steps, {"munjangvectorizer__dimensions": [4, 32]}, cv=2)
    assert search.fit(SHORT, LABELS).best_params_["munjangvectorizer__dimensions"] in (4, 32)


def test_columns_have_names_and_tables_come_out_on_request(vectorizer: Any) -> None:
    names = vectorizer.get_feature_names_out()
    assert names[0] == "munjangvectorizer0"
    assert len(names) == 32
    frame = vectorizer.set_output(transform="pandas").fit_transform(SHORT)
    assert list(frame.columns) == list(names)
    assert list(MunjangVectorizer(vectorizer.model, dimensions=3).get_feature_names_out()) == [f"munjangvectorizer{n}" for n in range(3)]


def test_it_stands_beside_others_in_a_column_transformer(vectorizer: Any) -> None:
    pandas = library("pandas")
    frame = pandas.DataFrame({"text": SHORT, "length": [len(text) for text in SHORT]})
    columns = library("sklearn.compose").ColumnTransformer([("text", vectorizer, "text"), ("rest", "passthrough", ["length"])])
    assert columns.fit_transform(frame).shape == (len(SHORT), 33)


def test_prompts_are_used_by_role(prompted: SentenceEncoder) -> None:
    queries = MunjangVectorizer(prompted.folder.path, role="query")
    np.testing.assert_allclose(queries.transform(SHORT), prompted.encode_query(SHORT), atol=1e-6)


def test_another_model_than_at_fit_is_refused(tiny_folder: Any, tiny_bert_folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "model"
    shutil.copytree(tiny_bert_folder, place)
    fitted = MunjangVectorizer(place).fit(SHORT)
    shutil.rmtree(place)
    shutil.copytree(tiny_folder("bert", pooling=("cls",)), place)
    with pytest.raises(UsageError, match="another one than at fit"):
        fitted.transform(SHORT)


def test_a_wrong_name_is_heard_at_fit() -> None:
    with pytest.raises(FolderError, match="nobody"):
        MunjangVectorizer("nobody").fit(SHORT)


MunjangClassifier = adapter("sklearn", needs="sklearn").MunjangClassifier


@pytest.mark.parametrize("check", APPLY)
def test_the_classifier_passes_scikit_learns_own_check(tiny_bert_folder: Path, check: str) -> None:
    getattr(checks, check)("MunjangClassifier", MunjangClassifier(str(tiny_bert_folder)))


def test_check_estimator_finds_nothing_wrong_with_the_classifier(tiny_bert_folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it cannot make texts
        found = checks.check_estimator(MunjangClassifier(str(tiny_bert_folder)), on_fail=None)
    assert {each["status"] for each in found} <= {"passed", "skipped"}


def test_the_classifier_keeps_labels_as_they_are_and_is_cloned(tiny_bert_folder: Path) -> None:
    labels = np.array([2, 2, 10, 10, 2, 10])
    made = base.clone(MunjangClassifier(str(tiny_bert_folder), strength=1000.0)).fit(SHORT, labels)
    assert made.classes_.tolist() == [2, 10]
    chances = made.predict_proba(SHORT)
    assert chances.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    assert (made.predict(SHORT) == made.classes_[chances.argmax(axis=1)]).all()
    assert made.score(SHORT, labels) > 0.6
    with pytest.raises(Exception, match="not fitted"):
        MunjangClassifier(str(tiny_bert_folder)).predict(SHORT)
