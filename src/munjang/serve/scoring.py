"""Pairs of texts → scores of the served cross-encoder, computed in the server's batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.engine.cross import PairIds
from munjang.models.cross_encoder import CrossEncoder, fit_pair
from munjang.models.pair_classifier import PairClassifier
from munjang.models.pair_scores import ScoreKind, activate_logits
from munjang.models.ranking import Ranker
from munjang.serve.call import Call
from munjang.serve.errors import Refusal
from munjang.text.batching import plan_batches
from munjang.types import Vectors
from munjang.wording import count


class PassageScorer:
    """A model as the Scorer of one search; nothing is warned of: whoever answers the client says it there."""

    def __init__(self, model: Ranker) -> None:
        self._model = model
        self.share = model.share
        self.unfinished: tuple[int, int] | None = None
        """How many were scored, of how many, where time was up before all were."""

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score per pair."""
        return self._model.predict_with_report(pairs).scores

    def time_was_up(self, scored: int, candidates: int, /) -> None:
        """Remember how far the re-ranking got."""
        self.unfinished = scored, candidates


async def score_pairs_in_turns(call: Call, pairs: Sequence[tuple[str, str]], *, score: ScoreKind) -> list[float]:
    """Return one score per pair, and remember which pairs were cut."""
    model = call.reranker
    if len(model.labels) != 1:
        raise Refusal(424, f"{model.name} has {count(len(model.labels), 'label')}; ordering needs one with one score")
    found = await call.service.in_thread(call.request_work, lambda: model.predict_with_report(pairs, score=score), texts=len(pairs))
    call.note(texts=len(pairs), truncated=found.cut)
    scores: list[float] = found.scores.tolist()
    return scores


async def predict_labels(call: Call, groups: Sequence[Sequence[str]], *, raw: bool) -> list[list[dict[str, Any]]]:
    """Return the labels of each text or pair with their scores, best first."""
    model = call.service.find_labeller()
    logits_NL, cut = await call.service.in_thread(call.request_work, lambda: _logits(model, groups), texts=len(groups))
    call.note(texts=len(groups), truncated=cut)
    rows = (logits_NL if raw else activate_logits(logits_NL, "sigmoid" if len(model.labels) == 1 else "softmax")).tolist()
    labelled = [[{"label": label, "score": value} for label, value in zip(model.labels, row, strict=True)] for row in rows]
    return [sorted(row, key=lambda each: -each["score"]) for row in labelled]


def _logits(model: CrossEncoder | PairClassifier, groups: Sequence[Sequence[str]]) -> tuple[Vectors, list[int]]:
    """Return the logits of texts and pairs, and which of them were cut; a text alone is read as one text, not as half a pair."""
    if isinstance(model, PairClassifier):
        alone = next((number for number, group in enumerate(groups) if len(group) != 2), None)
        if alone is not None:
            raise Refusal(422, f"inputs: entry {alone} is one text; {model.name} labels pairs\n  send [[text, text], …]", field="inputs")
        found = model.predict_with_report([(a, b) for a, b in groups], score="logits")
        return found.scores, found.cut
    plain = [model.tokenizer.encode_plain(group) for group in groups]
    ids: list[PairIds] = []
    cut = []
    for number, parts in enumerate(plain):
        special = model.tokenizer.special_count if len(parts) == 1 else model.tokenizer.pair_special_count
        room = model.max_length - special
        if sum(map(len, parts)) > room:
            cut.append(number)
        if len(parts) == 2:
            ids.append(model.tokenizer.wrap_pair(*fit_pair(parts[0], parts[1], room)))
        else:
            whole = model.tokenizer.wrap(parts[0][:room])
            ids.append((whole, [0] * len(whole)))
    logits_NL = np.zeros((len(ids), len(model.labels)), np.float32)
    batches = plan_batches([len(one) for one, _ in ids])
    for batch, rows in zip(batches, model.engine.logits_of_batches([[ids[n] for n in batch] for batch in batches]), strict=True):
        logits_NL[batch] = rows
    return logits_NL, cut
