"""Munjang for scikit-learn: a transformer, texts → vectors, and a classifier, texts → labels. Needs scikit-learn.

It knows its model by name or folder only: pipelines are cloned, searched over and pickled, and a name costs nothing to copy. Clones in one
process share the loaded model. The transformer has nothing to learn: `fit` notes which model it met, and `transform` refuses another one.
The classifier is `munjang.fit_classifier`: its strength is cross-validated and its probabilities are calibrated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from munjang.adapters.loading import Texts, load_encoder_once, make_missing_error
from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.fitting import fit_classifier
from munjang.errors import UsageError
from munjang.models.prompted_encoder import Role
from munjang.options import default_of
from munjang.text.validate_texts import validate_texts
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, Floats, LongText

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise make_missing_error("sklearn", "scikit-learn", error) from error


class MunjangVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Turns texts into vectors, at any place of a pipeline where a `TfidfVectorizer` could stand."""

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        compute: Compute = DEFAULT_COMPUTE,
        normalize: bool = False,
        dimensions: int | None = None,
        long_text: LongText = DEFAULT_LONG_TEXT,
        role: Role | None = None,
    ) -> None:
        self.model = model
        self.compute = compute
        self.normalize = normalize
        self.dimensions = dimensions
        self.long_text = long_text
        self.role = role

    def fit(self, X: Any, y: Any = None) -> MunjangVectorizer:  # noqa: ARG002
        """Load the model and remember which it was."""
        _list_texts(X)
        self.fingerprint_ = self._texts().encoder.fingerprint
        return self

    def transform(self, X: Any) -> Floats:
        """Return one float32 row per text."""
        texts = self._texts()
        met = getattr(self, "fingerprint_", texts.encoder.fingerprint)
        if met != texts.encoder.fingerprint:
            raise UsageError(
                f"the model {texts.encoder.name} is another one than at fit (fingerprint {texts.encoder.fingerprint}, was {met})\n"
                "  fit the pipeline again, or give it the old model"
            )
        return texts.vectors(_list_texts(X), self.role)

    def _texts(self) -> Texts:
        return Texts(load_encoder_once(self.model, compute=self.compute), self.normalize, self.dimensions, self.long_text)

    @property
    def _n_features_out(self) -> int:
        return self.dimensions or self._texts().encoder.dimension

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.requires_fit = False
        return tags


class MunjangClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Labels texts, at any place where a pipeline of a vectorizer and a `LogisticRegressionCV` could stand."""

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        compute: Compute = DEFAULT_COMPUTE,
        class_weight: Literal["none", "balanced"] = default_of(fit_classifier, "class_weight"),
        strength: float | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.compute = compute
        self.class_weight = class_weight
        self.strength = strength
        self.seed = seed

    def fit(self, X: Any, y: Any) -> MunjangClassifier:
        """Learn from texts and their labels; `classes_` holds the labels as they were given."""
        texts = _list_texts(X)
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(texts):
            raise UsageError(f"y has the shape {labels.shape}, expected one label for each of the {len(texts):,} texts")
        self.classes_, place_N = np.unique(labels, return_inverse=True)
        encoder = load_encoder_once(self.model, compute=self.compute)
        self.classifier_ = fit_classifier(texts, place_N, encoder, class_weight=self.class_weight, strength=self.strength, seed=self.seed)
        return self

    def predict(self, X: Any) -> Any:
        """Return the likeliest label of each text."""
        best_N = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best_N]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each label, in the order of `classes_`."""
        check_is_fitted(self)
        encoder = load_encoder_once(self.model, compute=self.compute)
        found = apply_classifier(self.classifier_, _list_texts(X), encoder).probability_NC
        return found[:, np.argsort([int(name) for name in self.classifier_.labels])]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _list_texts(texts: Any) -> list[str]:
    """Return texts of a list, a Series, an array, or a table of one column as a list."""
    shape: tuple[int, ...] = getattr(texts, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        rows = texts.to_numpy() if hasattr(texts, "to_numpy") else texts
        return validate_texts([row[0] for row in rows.tolist()], name="X")
    return validate_texts(texts, name="X")
