"""Loading the model that a command names, as an encoder or a scorer that shows a progress bar while it works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from munjang.cli.options import chosen_device, chosen_engine, chosen_pooling
from munjang.cli.show import note
from munjang.engine.folder import PAIR_CLASSIFIER_FILE, read_folder
from munjang.errors import UsageError, quote
from munjang.models.registry import resolve
from munjang.types import DEFAULT_COMPUTE, Compute, Pooling

if TYPE_CHECKING:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.pair_classifier import PairClassifier
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.models.ranking import Ranker
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.types import Vectors

SHOWN_PAIRS = 1_000
"""Fewer pairs than this are scored too soon for a progress bar."""


SAME_LABELS = ("1", "same", "duplicate", "paraphrase", "equivalent")
"""Names of a label that mean the same without being told."""


class ProgressScorer:
    """A Scorer over a loaded cross-encoder or pair classifier, or over one of its labels."""

    def __init__(self, model: CrossEncoder | PairClassifier, label: str | None = None) -> None:
        self.model, self.label = model, label

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the scores would."""
        return self.model.fingerprint if self.label is None else self.model.for_label(self.label).fingerprint

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score, or one row of label scores, per pair; of one label its probability."""
        shown = len(pairs) >= SHOWN_PAIRS
        if self.label is None:
            return self.model.predict(pairs, progress=shown)
        return self.model.for_label(self.label).predict(pairs, progress=shown)

    def for_same(self, positive: str | None) -> ProgressScorer:
        """Return what scores how likely two texts are the same; of several labels, the probability of `positive`, or of an obvious one."""
        labels = self.model.labels
        if len(labels) == 1:
            if positive is not None:
                raise UsageError(f"--positive {quote(positive, 30)}: {self.name} gives one score and has no labels to choose from")
            return self
        obvious = ("LABEL_1",) if labels == ("LABEL_0", "LABEL_1") else SAME_LABELS
        chosen = positive or next((label for label in labels if label.lower() in obvious or label in obvious), None)
        if chosen is None:
            raise UsageError(
                f"{self.name} has the labels {', '.join(labels[:10])}, and none says by its name that two texts are the same\n"
                "  name the one that does with --positive"
            )
        return ProgressScorer(self.model, self.model.for_label(chosen).label)


def load_scorer(name: str | None, *, compute: Compute = DEFAULT_COMPUTE) -> ProgressScorer | None:
    """Load a model if it is a cross-encoder or a pair classifier; None where it is an encoder of sentences."""
    import warnings

    from munjang.models.pair_classifier import PairClassifier

    path = resolve(name).path
    if (path / PAIR_CLASSIFIER_FILE).is_file():
        return ProgressScorer(PairClassifier.load(path, compute=compute))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is asked when it is loaded
        if read_folder(path).kind != "cross":
            return None
    return ProgressScorer(load_cross_encoder(name if name is not None else path, compute=compute))


def load_cross_encoder(name: str | Path | None = None, *, compute: Compute = DEFAULT_COMPUTE) -> CrossEncoder:
    """Load a cross-encoder where --device and --engine ask for it."""
    from munjang.models.cross_encoder import CrossEncoder

    return _tell(CrossEncoder.load(name, compute=compute, device=chosen_device(), engine=chosen_engine()))


def load_ranker(name: str | None, *, late: bool = False, compute: Compute = DEFAULT_COMPUTE) -> Ranker:
    """Load what ranks texts: the cross-encoder of a name; without one, or with `late`, a sentence encoder whose tokens are compared."""
    from munjang.models.late_reranker import LateReranker

    return LateReranker(load_model(name, compute=compute)) if late or name is None else load_cross_encoder(name, compute=compute)


def load_other_model(name: str | Path | None, *, compute: Compute = DEFAULT_COMPUTE, pooling: Pooling | None = None) -> SentenceEncoder:
    """Load a sentence encoder that --pooling is not meant for, where --device and --engine ask for it."""
    from munjang.models.sentence_encoder import SentenceEncoder

    return _tell(SentenceEncoder.load(name, compute=compute, pooling=pooling, device=chosen_device(), engine=chosen_engine()))


def load_judge(name: str | None, *, compute: Compute = DEFAULT_COMPUTE, positive: str | None = None) -> PromptedEncoder | ProgressScorer:
    """Load any model as what gives a pair one score: a cosine, a score, or the probability of the label that means the same."""
    scorer = load_scorer(name, compute=compute)
    if scorer is not None:
        return scorer.for_same(positive)
    if positive is not None:
        raise UsageError(f"--positive {quote(positive, 30)}: a sentence encoder gives cosines and has no labels")
    return load_encoder(name, compute=compute)


def load_model(
    name: str | Path | None, *, compute: Compute | None = DEFAULT_COMPUTE, pooling: Pooling | None = None, made: str | None = None
) -> SentenceEncoder:
    """Load a sentence encoder with the pooling that --pooling asks for, else with `pooling`, else with its own.

    Where `compute` is not said, the model computes as it did for vectors with the fingerprint `made`.
    """
    from munjang.library.open_store import COMPUTES

    pooling = chosen_pooling() or pooling
    model = load_other_model(name, compute=compute or DEFAULT_COMPUTE, pooling=pooling)
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


def load_encoder(name: str | None, *, compute: Compute | None = DEFAULT_COMPUTE, made: str | None = None) -> PromptedEncoder:
    """Load a model that reads every text alike, whatever it is for."""
    return load_model(name, compute=compute, made=made).with_prompt(progress=True)


def load_for_search(name: str | None, *, compute: Compute = DEFAULT_COMPUTE) -> tuple[PromptedEncoder, PromptedEncoder]:
    """Load a model as the encoder of queries and the encoder of documents, each with its prompt where the model has one."""
    model = load_model(name, compute=compute)
    return model.for_queries(progress=True), model.for_documents(progress=True)
