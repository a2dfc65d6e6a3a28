"""Pairs of texts → scores: the cosine of a sentence encoder, the score or the labels of a cross-encoder or pair classifier.

Pairs are scored in blocks, so that an iterator of any length is read with the memory of one block. A text beyond the model's limit is
cut, and `PairScores.cut` says in which pairs. `load_pair_model` loads whichever of the three kinds a folder holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np

from munjang.engine.folder import PAIR_CLASSIFIER_FILE, read_folder
from munjang.errors import UsageError, quote
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.long_text import TruncationWarning
from munjang.models.pair_classifier import PairClassifier, encode_pairs
from munjang.models.pair_scores import PairScores, ScoreKind
from munjang.models.progress import progress_bar
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import Option, check_options
from munjang.text.validate_texts import validate_pairs
from munjang.types import DEFAULT_COMPUTE, Compute, Pooling
from munjang.vectors.similarity import similarity_pairwise
from munjang.wording import count, plural

PairModel: TypeAlias = SentenceEncoder | PromptedEncoder | CrossEncoder | PairClassifier

BLOCK = 2_048
"""Pairs that are held and scored at once."""


def score_pairs(
    pairs: Iterable[tuple[str, str]],
    model: PairModel,
    *,
    score: Annotated[
        ScoreKind | None,
        Option("What a score of a cross-encoder or pair classifier is. Default: the model's own; probabilities if it has several labels."),
    ] = None,
    progress: bool = False,
) -> PairScores:
    """Return the score of every pair, in the caller's order; pairs of an iterator are read as they are needed.

    Of a sentence encoder it is the cosine. Of a model with several labels there is one score per label, and `predicted` names the best.

    >>> score_pairs([("비가 온다", "It is raining")], SentenceEncoder.load()).scores     # doctest: +SKIP
    array([0.87], dtype=float32)
    """
    check_options(score_pairs, {"score": score})
    total = len(pairs) if isinstance(pairs, Sized) else None
    blocks: list[PairScores] = []
    cut: list[int] = []
    seen = 0
    with progress_bar("score", total, shown=progress) as advance:
        for block in stream_scores(pairs, model, score=score):
            blocks.append(block)
            cut += [seen + number for number in block.cut]
            seen += len(block.scores)
            advance(len(block.scores))
    if cut:
        warn_of_cut_pairs(len(cut), seen, model.max_length, in_python="`cut` says which")
    return PairScores(np.concatenate([block.scores for block in blocks]), cut, blocks[0].labels)


def stream_scores(
    pairs: Iterable[tuple[str, str]], model: PairModel, *, score: ScoreKind | None = None, block: int = BLOCK
) -> Iterator[PairScores]:
    """Yield the scores of `block` pairs at a time, in order, holding no more than that; never warns. No pairs give one empty block."""
    check_pair_model(model)
    waiting = pairs if isinstance(pairs, Iterator) else iter(validate_pairs(pairs))
    group, seen = list(islice(waiting, block)), 0
    while group or seen == 0:
        yield score_block(validate_pairs(group, start=seen), model, score=score)
        seen += max(len(group), 1)
        group = list(islice(waiting, block))


def score_block(pairs: Sequence[tuple[str, str]], model: PairModel, *, score: ScoreKind | None = None) -> PairScores:
    """Return the scores of a few pairs, computed at once; never warns."""
    if isinstance(model, PairClassifier):
        return model.predict_with_report(pairs, score=score or "softmax")
    if isinstance(model, CrossEncoder):
        return model.predict_with_report(pairs, score=score or model.label_score)
    if score is not None:
        raise UsageError(
            f"score is {quote(score)}, and a sentence encoder gives cosines\n  leave it out, or give a cross-encoder or a pair classifier"
        )
    if not pairs:
        return PairScores(np.zeros(0, np.float32), [])
    encoder, prompt = (model.model, model.prompt) if isinstance(model, PromptedEncoder) else (model, None)
    u_ND, v_ND, cut = encode_pairs(encoder, pairs, prompt=prompt)
    return PairScores(np.clip(similarity_pairwise(u_ND, v_ND, metric="cosine"), -1.0, 1.0), cut)


def check_pair_model(model: object) -> None:
    """Refuse what scores no pairs, such as the name of a model that is not loaded."""
    if isinstance(model, SentenceEncoder | PromptedEncoder | CrossEncoder | PairClassifier):
        return
    what = f"the {'text' if isinstance(model, str) else 'path'} {quote(str(model))}" if isinstance(model, str | Path) else None
    raise UsageError(
        f"model is {what or f'a {type(model).__name__}'}, expected a loaded model\n"
        "  load it with SentenceEncoder.load, CrossEncoder.load or PairClassifier.load"
    )


def warn_of_cut_pairs(cut: int, seen: int, limit: int | None, *, in_python: str, stacklevel: int = 2) -> None:
    """Warn that a text of so many of the pairs seen was cut."""
    fact = f"{cut:,} of {count(seen, 'pair')} {plural(cut, 'is')} longer than the model's limit of {limit} tokens; not read to the end"
    warnings.warn(TruncationWarning(fact, in_python=in_python), stacklevel=stacklevel + 1)


def load_pair_model(
    name: str | Path | None = None, *, compute: Compute = DEFAULT_COMPUTE, threads: int | None = None, pooling: Pooling | None = None
) -> SentenceEncoder | CrossEncoder | PairClassifier:
    """Load whichever model a folder holds; the folder of a sentence encoder with a kept head is the encoder, the head's own is the head."""
    found = resolve(name)
    if (found.path / PAIR_CLASSIFIER_FILE).is_file():
        return PairClassifier.load(found.path, compute=compute, threads=threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is asked when it is loaded
        kind = read_folder(found.path).kind
    chosen = name if name is not None else found.path
    if kind == "cross":
        return CrossEncoder.load(chosen, compute=compute, threads=threads)
    return SentenceEncoder.load(chosen, compute=compute, threads=threads, pooling=pooling)
