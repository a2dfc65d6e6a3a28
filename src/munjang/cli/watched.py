"""A model that shows a progress bar while it works, for `evaluate`, whose tasks only know the `Encoder` and `Scorer` protocols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli.options import Compute, chosen_pooling
from munjang.models.over_encoder import OverEncoder
from munjang.types import Vectors

if TYPE_CHECKING:
    from munjang.engine.modules import Pooling
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
    def compute(self) -> Compute:
        """How the model computes."""
        return self.model.compute

    @property
    def pooling(self) -> Pooling | None:
        """How token vectors become one."""
        return self.model.pooling

    def fingerprint_as(self, compute: Compute) -> str:
        """Return the fingerprint that this encoder has when the model computes so."""
        found = self.model.fingerprint_as(compute)
        return f"{found} {self._prompt_name}" if self._prompt_name else found

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


def load_scorer(name: str | None, *, compute: Compute = "float32") -> WatchedScorer | None:
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


def load_model(
    name: str | Path | None, *, compute: Compute | None = "float32", pooling: Pooling | None = None, made: str | None = None
) -> SentenceEncoder:
    """Load a sentence encoder with the pooling that --pooling asks for, else with `pooling`, else with its own.

    Where `compute` is not said, the model computes as it did for vectors with the fingerprint `made`.
    """
    from munjang.models.sentence_encoder import SentenceEncoder

    pooling = chosen_pooling() or pooling
    model = SentenceEncoder.load(name, compute=compute or "float32", pooling=pooling)
    wanted = model.fingerprint if compute is not None or made is None else made.split(" ")[0]
    if wanted != model.fingerprint and wanted == model.fingerprint_as("int8"):
        return SentenceEncoder.load(name, compute="int8", pooling=pooling)
    return model


def load_watched(name: str | None, *, compute: Compute | None = "float32", made: str | None = None) -> Watched:
    """Load a model for sentences that are alike on both sides."""
    return Watched(load_model(name, compute=compute, made=made))


def load_for_search(name: str | None, *, compute: Compute = "float32") -> tuple[Watched, Watched]:
    """Load a model as the encoder of queries and the encoder of documents, each with its prompt where the model has one."""
    return for_search(load_model(name, compute=compute))


def for_search(model: SentenceEncoder) -> tuple[Watched, Watched]:
    """Return a model as the encoder of queries and the encoder of documents."""
    return Watched(model, prompts=QUERY), Watched(model, prompts=DOCUMENT)
