"""CrossEncoder: pairs of texts → scores, and nothing else.

Both texts go through the encoder together, which is more exact than comparing vectors and far slower: use it to order a few candidates. A
pair beyond the model's limit loses the end of its second text, never of its first, unless the first alone does not fit;
`predict_with_report` says which pairs were cut. One cross-encoder may be used from many threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from munjang.engine.cross import CrossEngine, PairIds
from munjang.engine.folder import ModelFolder, fingerprint, read_folder
from munjang.engine.modules import TransformerModule
from munjang.errors import UsageError
from munjang.limits import LIMITS
from munjang.models.batch_encoder import check_vocabulary
from munjang.models.open_engine import check_engine, open_cross_engine
from munjang.models.pair_scores import (
    DEFAULT_SCORE,
    LabelScorer,
    PairScores,
    ScoreKind,
    activate_logits,
    choose_activation,
    make_label_scorer,
)
from munjang.models.progress import Advance, progress_bar
from munjang.models.ranking import Ranker
from munjang.models.registry import resolve_cross_encoder
from munjang.models.save import save_cross_folder
from munjang.options import ComputeOption, DeviceOption, EngineOption
from munjang.other_names import LOAD, PREDICT, explain_other_names
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer, load_tokenizer
from munjang.text.validate_texts import validate_pairs
from munjang.types import DEFAULT_COMPUTE, DEFAULT_DEVICE, DEFAULT_ENGINE, Compute, Device, Vectors
from munjang.wording import count, name_facts, quote_place

FEWEST_DOCUMENT_TOKENS = 8
"""A query is only cut so far that this much of a document can be read."""


class CrossEncoder(Ranker):
    """Scores pairs of texts.

    >>> model = CrossEncoder.load("reranker")                                       # doctest: +SKIP
    >>> model.rank("winter weather", ["It snows.", "Bread rises."])                 # doctest: +SKIP
    """

    max_length: int

    def __init__(
        self, folder: ModelFolder, tokenizer: Tokenizer, engine: CrossEngine, *, name: str, compute: Compute, max_length: int
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.engine = engine
        self.name = name
        self.compute = compute
        self.max_length = max_length

    def __repr__(self) -> str:
        where = [] if self.device == "cpu" else [f"on {self.device}"]
        facts = [count(len(self.labels), "label"), self.compute, *where, f"at most {count(self.max_length, 'token')}"]
        return name_facts("CrossEncoder", [quote_place(self.name), *facts])

    @classmethod
    @explain_other_names(LOAD)
    def load(
        cls,
        name: str | Path | None = None,
        *,
        compute: ComputeOption = DEFAULT_COMPUTE,
        threads: int | None = None,
        max_length: int | None = None,
        device: DeviceOption = DEFAULT_DEVICE,
        engine: EngineOption = DEFAULT_ENGINE,
    ) -> CrossEncoder:
        """Load a cross-encoder by name or path; none is bundled. `device` and `engine` as in SentenceEncoder.load."""
        check_engine(engine, device, compute)
        found = resolve_cross_encoder(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a plain encoder folder is refused below, so its pooling need not be assumed aloud
            folder = read_folder(found.path)
        started = open_cross_engine(folder, engine=engine, device=device, compute=compute, threads=threads)
        base = folder.base
        assert isinstance(base, TransformerModule)  # what the engine checked
        tokenizer = load_tokenizer(base.folder)
        check_vocabulary(folder, tokenizer, started.vocabulary_size)
        limits = (folder.max_length, tokenizer.max_length, started.max_tokens, max_length)
        limit = min(limit for limit in limits if limit is not None)
        if limit < tokenizer.pair_special_count + FEWEST_DOCUMENT_TOKENS:
            raise UsageError(f"a limit of {limit} tokens leaves no room for two texts")
        return cls(folder, tokenizer, started, name=found.name, compute=started.placement.compute, max_length=limit)

    @property
    def device(self) -> Device:
        """Where the model computes; never "auto"."""
        return self.engine.placement.device

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names; one label means a score."""
        return self.engine.head.labels

    @property
    def share(self) -> float:
        """Its weight when it re-ranks the hits of a search, as set in its folder; 1 by default."""
        return self.engine.head.share

    @cached_property
    def fingerprint(self) -> str:
        """A short name that changes whenever the scores would."""
        return fingerprint(self.folder, settings=f"cross {self.compute} {self.max_length}")

    @explain_other_names(PREDICT)
    def predict_with_report(
        self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False
    ) -> PairScores:
        """Score pairs and report which were truncated; never warns."""
        listed = validate_pairs(pairs)
        logits = np.zeros((len(listed), len(self.labels)), np.float32)
        cut: list[int] = []
        with progress_bar("score", len(listed), shown=progress) as advance:
            for start in range(0, len(listed), LIMITS.stream_texts):
                block = listed[start : start + LIMITS.stream_texts]
                ids, too_long = self._ids(block)
                cut += [start + number for number in too_long]
                self._fill(logits[start : start + len(block)], ids, advance)
        scores = activate_logits(logits, choose_activation(score, self.engine.head.activation))
        return PairScores(scores[:, 0], cut) if len(self.labels) == 1 else PairScores(scores, cut, self.labels)

    @property
    def label_score(self) -> ScoreKind:
        """What scores of labels are where nobody says: several logits without an activation mean classes that exclude each other."""
        return "softmax" if len(self.labels) > 1 and self.engine.head.activation == "identity" else "model"

    def for_label(self, label: str, /, *, score: ScoreKind | None = None) -> LabelScorer:
        """Return this model as a Scorer of one of its labels, such as "entailment"; its score is the label's probability."""
        return make_label_scorer(self, label, score=score or self.label_score)

    def save(self, path: str | Path) -> None:
        """Write a folder that Munjang and sentence-transformers' CrossEncoder load with equal scores."""
        save_cross_folder(self.folder, self.tokenizer, Path(path), max_length=self.max_length, activation=self.engine.head.activation)

    def _ids(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairIds], list[int]]:
        unique = list(dict.fromkeys(text for pair in pairs for text in pair))
        plain = dict(zip(unique, self.tokenizer.encode_plain(unique), strict=True))
        room = self.max_length - self.tokenizer.pair_special_count
        fitted = [fit_pair(plain[first], plain[second], room) for first, second in pairs]
        too_long = [number for number, (first, second) in enumerate(pairs) if len(plain[first]) + len(plain[second]) > room]
        return [self.tokenizer.wrap_pair(first, second) for first, second in fitted], too_long

    def _fill(self, logits: Vectors, ids: list[PairIds], advance: Advance) -> None:
        place = self.engine.placement
        batches = plan_batches([len(one) for one, _ in ids], budget=place.batch_tokens, efficient=place.efficient_tokens)
        for batch, rows in zip(batches, self.engine.logits_of_batches([[ids[n] for n in batch] for batch in batches]), strict=True):
            logits[batch] = rows
            advance(len(batch))


def fit_pair(first: Sequence[int], second: Sequence[int], room: int) -> tuple[Sequence[int], Sequence[int]]:
    """Cut the second text to fit; the first only where it would leave no room at all."""
    if len(first) + len(second) <= room:
        return first, second
    kept = first[: max(room - min(len(second), FEWEST_DOCUMENT_TOKENS), 0)]
    return kept, second[: room - len(kept)]
