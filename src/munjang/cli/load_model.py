"""Loading the model that a command names, as an encoder or a scorer that shows a progress bar while it works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from munjang.cli.options import chosen_device, chosen_engine, chosen_pooling
from munjang.cli.show import note
from munjang.types import Compute, Vectors

if TYPE_CHECKING:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.types import Pooling

SHOWN_PAIRS = 1_000
"""Fewer pairs than this are scored too soon for a progress bar."""


class ProgressScorer:
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


def load_scorer(name: str | None, *, compute: Compute = "float32") -> ProgressScorer | None:
    """Load a model if it is a cross-encoder; None where it is an encoder of sentences."""
    import warnings

    from munjang.engine.folder import read_folder
    from munjang.models.registry import resolve

    path = resolve(name).path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is asked when it is loaded
        if read_folder(path).kind != "cross":
            return None
    return ProgressScorer(load_cross_encoder(name if name is not None else path, compute=compute))


def load_cross_encoder(name: str | Path | None = None, *, compute: Compute = "float32") -> CrossEncoder:
    """Load a cross-encoder, the default one without a name, where --device and --engine ask for it."""
    from munjang.models.cross_encoder import CrossEncoder

    return _tell(CrossEncoder.load(name, compute=compute, device=chosen_device(), engine=chosen_engine()))


def load_other_model(name: str | Path | None, *, compute: Compute = "float32", pooling: Pooling | None = None) -> SentenceEncoder:
    """Load a sentence encoder that --pooling is not meant for, where --device and --engine ask for it."""
    from munjang.models.sentence_encoder import SentenceEncoder

    return _tell(SentenceEncoder.load(name, compute=compute, pooling=pooling, device=chosen_device(), engine=chosen_engine()))


def load_model(
    name: str | Path | None, *, compute: Compute | None = "float32", pooling: Pooling | None = None, made: str | None = None
) -> SentenceEncoder:
    """Load a sentence encoder with the pooling that --pooling asks for, else with `pooling`, else with its own.

    Where `compute` is not said, the model computes as it did for vectors with the fingerprint `made`.
    """
    from munjang.library.open_store import COMPUTES

    pooling = chosen_pooling() or pooling
    model = load_other_model(name, compute=compute or "float32", pooling=pooling)
    wanted = model.fingerprint if compute is not None or made is None else made.split(" ")[0]
    if wanted != model.fingerprint:
        then = next((each for each in COMPUTES if each != model.compute and wanted == model.fingerprint_as(each)), None)
        return model if then is None else load_other_model(name, compute=then, pooling=pooling)
    return model


_Model = TypeVar("_Model", "SentenceEncoder", "CrossEncoder")


def _tell(model: _Model) -> _Model:
    """Say where a model computes unless it is the CPU, as ever."""
    if model.device != "cpu":
        note(f"{model.name} computes on {model.device} in {model.compute}")
    return model


def load_encoder(name: str | None, *, compute: Compute | None = "float32", made: str | None = None) -> PromptedEncoder:
    """Load a model that reads every text alike, whatever it is for."""
    return load_model(name, compute=compute, made=made).with_prompt(progress=True)


def load_for_search(name: str | None, *, compute: Compute = "float32") -> tuple[PromptedEncoder, PromptedEncoder]:
    """Load a model as the encoder of queries and the encoder of documents, each with its prompt where the model has one."""
    model = load_model(name, compute=compute)
    return model.for_queries(progress=True), model.for_documents(progress=True)
