"""Munjang's own routes for a few sentences: how alike they are, how pairs score, and what the model sees in them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from munjang.models.inspect import Inspection, TokenComparison, compare_tokens, inspect_text
from munjang.models.score_pairs import score_block, score_pairs
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts, cosines, vectors_of
from munjang.serve.schemas.base import options_in
from munjang.serve.schemas.sentences import InspectOut, InspectRequest, ScoreOut, ScoreRequest, SimilarityOut, SimilarityRequest
from munjang.wording import count


async def similarity(call: Call, body: SimilarityRequest) -> Reply:
    """Compare every sentence with every sentence."""
    limits = call.service.settings.limits
    check_texts(call, body.a, field="a")
    if body.b is not None:
        check_texts(call, body.b, field="b")
    rows, columns = len(body.a), len(body.b or body.a)
    if rows * columns > limits.max_matrix_cells:
        raise Refusal(413, f"{rows:,} × {columns:,} scores, the limit is {limits.max_matrix_cells:,}", field="a")
    together = await vectors_of(call, body.a, field="a")
    others = together if body.b is None else await vectors_of(call, body.b, field="b")
    return Reply({"scores": cosines(together, others), "truncated": call.seen.truncated}, headers=call.truncation_headers())


async def score(call: Call, body: ScoreRequest) -> Reply:
    """Score or label pairs with any served model."""
    check_texts(call, body.pairs, field="pairs")
    wrong = next((number for number, pair in enumerate(body.pairs) if len(pair) != 2), None)
    if wrong is not None:
        raise Refusal(422, f"pairs: entry {wrong} has {count(len(body.pairs[wrong]), 'text')}, expected two", field="pairs")
    model, pairs = call.service.find_pair_model(body.model), [(a, b) for a, b in body.pairs]
    options = options_in(body, score_pairs)
    found = await call.service.in_thread(call.errand, lambda: score_block(pairs, model, **options), texts=len(pairs))
    call.note(texts=len(pairs), truncated=found.cut)
    predicted = found.predicted if found.labels else []
    answer = {"model": model.name, "labels": found.labels, "scores": found.scores, "predicted": predicted, "truncated": found.cut}
    return Reply(answer, headers=call.truncation_headers())


async def inspect(call: Call, body: InspectRequest) -> Reply:
    """Show what the model sees in a sentence, or which tokens make two sentences alike."""
    model, other = call.encoder, body.other
    if other is None:
        found = await call.service.in_thread(call.errand, lambda: inspect_text(model, body.text))
        _note(call, [found])
        return Reply({"first": inspection_json(found)}, headers=call.truncation_headers())
    compared = await call.service.in_thread(call.errand, lambda: compare_tokens(model, body.text, other))
    _note(call, [compared.first, compared.second])
    return Reply(comparison_json(compared), headers=call.truncation_headers())


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Return an inspection for clients; hidden states are left out, they are large."""
    return {
        "text": found.text,
        "prompt": found.prompt,
        "tokens": [asdict(token) for token in found.tokens],
        "tokens_before_cut": found.tokens_before_cut,
        "layers": [{"name": layer.name, "shape": list(layer.shape), "mean_norm": layer.mean_norm} for layer in found.layers],
        "vector": found.vector,
    }


def comparison_json(compared: TokenComparison) -> dict[str, Any]:
    """Return a comparison for clients."""
    contribution = compared.contribution_NM
    return {
        "first": inspection_json(compared.first),
        "second": inspection_json(compared.second),
        "score": compared.score,
        "cosine": compared.cosine_NM,
        "contribution": None if contribution is None else contribution.tolist(),
        "best_pairs": [asdict(pair) for pair in compared.best_pairs],
    }


def _note(call: Call, found: list[Inspection]) -> None:
    cut = [number for number, one in enumerate(found) if one.was_cut]
    call.note(texts=len(found), tokens=sum(one.tokens_before_cut for one in found), truncated=cut)


OPERATIONS = (
    Operation(
        "POST",
        "/api/similarity",
        "munjang",
        "Compare every sentence with every other.",
        similarity,
        SimilarityRequest,
        SimilarityOut,
        computes=True,
    ),
    Operation("POST", "/api/score", "munjang", "Score or label pairs.", score, ScoreRequest, ScoreOut, computes=True),
    Operation("POST", "/api/inspect", "munjang", "What the model sees in a text.", inspect, InspectRequest, InspectOut, computes=True),
)
