"""Munjang's own routes for a few sentences: how similar they are, how pairs score, and what the model sees in them."""

from __future__ import annotations

from munjang.models.inspect import Inspection, compare_tokens, inspect_text
from munjang.models.score_pairs import score_block, score_pairs
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts, cosines, vectors_of
from munjang.serve.schema import OwnModel, options_in, takes_options
from munjang.wording import count


class SimilarityRequest(OwnModel):
    """Sentences to compare: each of `a` with each of `b`, or, without `b`, with one another."""

    a: list[str]
    b: list[str] | None = None
    model: str | None = None


class SimilarityOut(OwnModel):
    """A row for each of `a`, a column for each of `b`."""

    scores: list[list[float]]
    truncated: list[int]


@takes_options(score_pairs)
class ScoreRequest(OwnModel):
    """Pairs to score or label; `model` is the name of any served model."""

    pairs: list[list[str]]
    model: str | None = None


class ScoreOut(OwnModel):
    """One score per pair; of a model with several labels, one per label in the order of `labels`, and the label of the highest."""

    model: str
    labels: list[str]
    scores: list[float] | list[list[float]]
    predicted: list[str]
    truncated: list[int]


class InspectRequest(OwnModel):
    """A sentence to inspect, or two to compare token by token."""

    text: str
    other: str | None = None
    model: str | None = None


class TokenOut(OwnModel):
    """One token as the model gets it; start and end count characters."""

    text: str
    id: int
    segment: int
    position: int
    mask: int
    special: bool
    start: int
    end: int
    pooled: bool


class LayerOut(OwnModel):
    """One layer's output."""

    name: str
    shape: list[int]
    mean_norm: float | None


class InspectionOut(OwnModel):
    """Everything between a sentence and its vector."""

    text: str
    prompt: str
    tokens: list[TokenOut]
    tokens_before_cut: int
    layers: list[LayerOut]
    vector: list[float]


class TokenPairOut(OwnModel):
    """A token of the first sentence with its best partner in the second."""

    first: int
    second: int
    cosine: float
    contribution: float | None


class InspectOut(OwnModel):
    """One sentence, or two with every token's cosine with every token."""

    first: InspectionOut
    second: InspectionOut | None = None
    score: float | None = None
    cosine: list[list[float]] | None = None
    contribution: list[list[float]] | None = None
    best_pairs: list[TokenPairOut] | None = None


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
    found = await call.service.in_thread(call.request_work, lambda: score_block(pairs, model, **options), texts=len(pairs))
    call.note(texts=len(pairs), truncated=found.cut)
    predicted = found.predicted if found.labels else []
    answer = {"model": model.name, "labels": found.labels, "scores": found.scores, "predicted": predicted, "truncated": found.cut}
    return Reply(answer, headers=call.truncation_headers())


async def inspect(call: Call, body: InspectRequest) -> Reply:
    """Show what the model sees in a sentence, or which tokens make two sentences alike."""
    model, other = call.encoder, body.other
    if other is None:
        found = await call.service.in_thread(call.request_work, lambda: inspect_text(model, body.text))
        _note(call, [found])
        return Reply({"first": found.to_json()}, headers=call.truncation_headers())
    compared = await call.service.in_thread(call.request_work, lambda: compare_tokens(model, body.text, other))
    _note(call, [compared.first, compared.second])
    return Reply(compared.to_json(), headers=call.truncation_headers())


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
