"""PairClassifier: pairs of texts → labels, by a sentence encoder and the head that was kept from its training.

Both texts become vectors alone, and a linear classifier reads (u, v, |u−v|) or whichever parts it was trained with: the siamese classifier
of the Sentence-BERT paper. Equal texts are encoded once. One pair classifier may be used from many threads.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from munjang.engine.folder import PAIR_CLASSIFIER, PAIR_CLASSIFIER_FILE, fingerprint_encoder, read_folder
from munjang.engine.pair_head import PairHead, read_pair_head
from munjang.errors import FolderError
from munjang.limits import LIMITS
from munjang.models.long_text import TruncationWarning
from munjang.models.pair_scores import (
    DEFAULT_SCORE,
    LabelScorer,
    PairScores,
    ScoreKind,
    activate_logits,
    choose_activation,
    make_label_scorer,
)
from munjang.models.progress import progress_bar
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.other_names import LOAD, PREDICT, explain_other_names
from munjang.text.validate_texts import validate_pairs
from munjang.types import DEFAULT_COMPUTE, Compute, Vectors
from munjang.wording import count, name_facts, plural, quote_place


class PairClassifier:
    """Labels pairs of texts.

    >>> model = PairClassifier.load("models/nli")                                   # doctest: +SKIP
    >>> model.predict_with_report([("It rains.", "The sun shines.")]).predicted     # doctest: +SKIP
    ['contradiction']
    """

    def __init__(self, encoder: SentenceEncoder, head: PairHead, *, name: str) -> None:
        self.encoder = encoder
        self.head = head
        self.name = name

    def __repr__(self) -> str:
        return name_facts("PairClassifier", [quote_place(self.name), count(len(self.labels), "label"), self.compute])

    @classmethod
    @explain_other_names(LOAD)
    def load(
        cls, name: str | Path, *, compute: Compute = DEFAULT_COMPUTE, threads: int | None = None, max_length: int | None = None
    ) -> PairClassifier:
        """Load the classifier that was kept with a sentence encoder; `name` is the encoder's, or the classifier's own folder."""
        found = resolve(name)
        folder = find_pair_classifier(found.path)
        if folder is None:
            raise FolderError(_describe_missing(found.path))
        head, home = read_pair_head(folder), folder.parent
        encoder = SentenceEncoder.load(home, compute=compute, threads=threads, max_length=max_length)
        if fingerprint_encoder(encoder.folder) != head.encoder:
            raise FolderError(
                f"{folder}: was trained with another sentence encoder than the one in {home}\n"
                "  restore the encoder that was saved with it, or train again with keep_head = true"
            )
        if head.dimension != encoder.dimension:
            raise FolderError(f"{folder}: reads vectors of {head.dimension:,} dimensions, those of {home} have {encoder.dimension:,}")
        return cls(encoder, head, name=f"{home.name}/{folder.name}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names."""
        return self.head.labels

    @property
    def compute(self) -> Compute:
        """How the encoder computes."""
        return self.encoder.compute

    @property
    def max_length(self) -> int | None:
        """How many tokens of each text are read; None where nothing limits them."""
        return self.encoder.max_length

    @cached_property
    def fingerprint(self) -> str:
        """A short name that changes whenever the scores would."""
        digest = hashlib.sha256(self.encoder.fingerprint.encode())
        for array in (self.head.weight_KF, self.head.bias_K):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.labels, self.head.parts)).encode())
        return digest.hexdigest()[:32]

    @explain_other_names(PREDICT)
    def predict(self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False) -> Vectors:
        """Return one row of label scores per pair, shape (n, labels): probabilities, unless `score` says otherwise."""
        scored = self.predict_with_report(pairs, score=score, progress=progress)
        if scored.cut:
            cut, seen = len(scored.cut), len(scored.scores)
            fact = f"{cut:,} of {count(seen, 'pair')} {plural(cut, 'has')} a text longer than {self.max_length} tokens; not read to the end"
            warnings.warn(TruncationWarning(fact, in_python="predict_with_report says which"), stacklevel=2)
        return scored.scores

    @explain_other_names(PREDICT)
    def predict_with_report(
        self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False
    ) -> PairScores:
        """Label pairs and report in which a text was truncated; never warns."""
        listed, activation = validate_pairs(pairs), choose_activation(score, "softmax")
        logits_NK = np.zeros((len(listed), len(self.labels)), np.float32)
        cut: list[int] = []
        with progress_bar("score", len(listed), shown=progress) as advance:
            for start in range(0, len(listed), LIMITS.stream_texts):
                block = listed[start : start + LIMITS.stream_texts]
                u_ND, v_ND, too_long = encode_pairs(self.encoder, block, prompt="")
                logits_NK[start : start + len(block)] = self.head.logits(u_ND, v_ND)
                cut += [start + number for number in too_long]
                advance(len(block))
        return PairScores(activate_logits(logits_NK, activation), cut, self.labels)

    def for_label(self, label: str, /, *, score: ScoreKind | None = None) -> LabelScorer:
        """Return this model as a Scorer of one of its labels, such as "entailment"; its score is the label's probability."""
        return make_label_scorer(self, label, score=score or "softmax")


def encode_pairs(
    encoder: SentenceEncoder, pairs: Sequence[tuple[str, str]], *, prompt: str | None = None
) -> tuple[Vectors, Vectors, list[int]]:
    """Return the vectors of both sides from one call, and the numbers of the pairs in which a text was cut."""
    report = encoder.encode_with_report([*(a for a, _ in pairs), *(b for _, b in pairs)], prompt=prompt)
    cut = sorted({number % len(pairs) for number in report.too_long})
    return report.vectors[: len(pairs)], report.vectors[len(pairs) :], cut


def find_pair_classifier(folder: Path) -> Path | None:
    """Return the folder of the pair classifier that `folder` is, or that was kept inside it; None where there is none."""
    whole = folder.resolve()  # the encoder is in the folder above, also where the path is "."
    for place in (whole, whole / PAIR_CLASSIFIER):
        if (place / PAIR_CLASSIFIER_FILE).is_file():
            return place
    return None


def _describe_missing(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means does not matter here
        kind = read_folder(path).kind
    if kind == "cross":
        return f"{path}: holds a cross-encoder, which has labels of its own\n  use it with `munjang score` or CrossEncoder.load"
    return (
        f"{path}: holds a sentence encoder and no pair classifier\n"
        "  train one with the objective classification and keep_head = true; `munjang score` gives the cosine of this one"
    )
