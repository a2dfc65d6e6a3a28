"""A model that shows a progress bar while it works, for `evaluate`, whose tasks only know the `Encoder` and `Scorer` protocols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from munjang.models.over_encoder import OverEncoder
from munjang.types import Vectors

if TYPE_CHECKING:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.sentence_encoder import SentenceEncoder

QUERY = ("query",)
DOCUMENT = ("document", "passage", "corpus")
SHOWN_PAIRS = 1_000
"""Fewer pairs than this are scored too soon for a progress bar."""


class Watched(OverEncoder["SentenceEncoder"]):
    """An Encoder over a loaded model; of `prompts` it puts the first one that the model has before every text."""

    def __init__(self, model: SentenceEncoder, *, prompts: Sequence[str] = ()) -> None:
        super().__init__(model)
        self._prompt_name = next((name for name in prompts if name in model.prompts), None)

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        return f"{self.model.fingerprint} {self._prompt_name}" if self._prompt_name else self.model.fingerprint

    @property
    def max_length(self) -> int | None:
        """How many tokens the model reads of a text."""
        return self.model.max_length

    def count_tokens(self, texts: Iterable[str], /) -> list[int]:
        """Return how many tokens each text has, its prompt included."""
        return self.model.count_tokens(texts, prompt_name=self._prompt_name)

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one row per text."""
        vectors: Vectors = self.model.encode(texts, prompt_name=self._prompt_name, progress=True)
        return vectors


class WatchedScorer:
    """A Scorer over a loaded cross-encoder."""

    def __init__(self, model: CrossEncoder) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score, or one row of label scores, per pair."""
        return self.model.predict(pairs, progress=len(pairs) >= SHOWN_PAIRS)


def load_scorer(name: str | None, *, compute: Literal["float32", "int8"] = "float32") -> WatchedScorer | None:
    """Load a model if it is a cross-encoder; None where it is an encoder of sentences."""
    import warnings

    from munjang.engine.folder import read_folder
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.registry import resolve

    path = resolve(name).path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is asked when it is loaded
        if read_folder(path).kind != "cross":
            return None
    return WatchedScorer(CrossEncoder.load(name if name is not None else path, compute=compute))


def load_watched(name: str | None, *, compute: Literal["float32", "int8"] = "float32") -> Watched:
    """Load a model for sentences that are alike on both sides."""
    from munjang.models.sentence_encoder import SentenceEncoder

    return Watched(SentenceEncoder.load(name, compute=compute))


def load_for_search(name: str | None, *, compute: Literal["float32", "int8"] = "float32") -> tuple[Watched, Watched]:
    """Load a model as the encoder of queries and the encoder of documents, each with its prompt where the model has one."""
    from munjang.models.sentence_encoder import SentenceEncoder

    model = SentenceEncoder.load(name, compute=compute)
    return Watched(model, prompts=QUERY), Watched(model, prompts=DOCUMENT)
