"""Munjang for scikit-learn: a transformer, texts → vectors. Needs scikit-learn.

It knows its model by name or folder only: pipelines are cloned, searched over and pickled, and a name costs nothing to copy. Clones in one
process share the loaded model. There is nothing to learn: `fit` notes which model it met, and `transform` refuses another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from munjang.adapters.loading import Texts, load_encoder_once, make_missing_error
from munjang.errors import UsageError
from munjang.models.prompted_encoder import Role
from munjang.text.validate_texts import validate_texts
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, Floats, LongText

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
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


def _list_texts(texts: Any) -> list[str]:
    """Return texts of a list, a Series, an array, or a table of one column as a list."""
    shape: tuple[int, ...] = getattr(texts, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        rows = texts.to_numpy() if hasattr(texts, "to_numpy") else texts
        return validate_texts([row[0] for row in rows.tolist()], name="X")
    return validate_texts(texts, name="X")
