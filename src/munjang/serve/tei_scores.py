"""The routes of text-embeddings-inference that a cross-encoder answers: /rerank and /predict.

Clients of Cohere's dialect call /rerank too. Their bodies hold `documents` where these hold `texts`, and are answered as /v2/rerank does.
"""

from __future__ import annotations

from typing import Any

from munjang.serve import cohere
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.inputs import check_texts
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.tei import Prediction, PredictRequest, Rank, TeiRerankRequest
from munjang.serve.scoring import predicted, scored_pairs
from munjang.serve.tei_answer import computed
from munjang.wording import count


async def rerank(call: Call, body: TeiRerankRequest) -> Reply:
    """Order texts by how well they answer a query."""
    check_texts(call, body.texts, field="texts")
    pairs = [(body.query, text) for text in body.texts]
    scores = await scored_pairs(call, pairs, score="logits" if body.raw_scores else "sigmoid")
    _refuse_cut(call, body.truncate)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    ranks = [{"index": index, "score": scores[index], **({"text": body.texts[index]} if body.return_text else {})} for index in order]
    return computed(call, ranks, (text for pair in pairs for text in pair))


async def predict(call: Call, body: PredictRequest) -> Reply:
    """Label a text or a pair, or a list of them."""
    single = isinstance(body.inputs, str) or (bool(body.inputs) and isinstance(body.inputs[0], str))
    given = [[body.inputs] if isinstance(body.inputs, str) else body.inputs] if single else body.inputs
    groups: list[list[str]] = given  # type: ignore[assignment]
    check_texts(call, groups, field="inputs")
    wrong = next((number for number, group in enumerate(groups) if len(group) not in (1, 2)), None)
    if wrong is not None:
        raise Refusal(422, f"inputs: entry {wrong} has {count(len(groups[wrong]), 'text')}, expected one text or a pair", field="inputs")
    rows = await predicted(call, groups, raw=body.raw_scores)
    _refuse_cut(call, body.truncate)
    return computed(call, rows[0] if single else rows, (text for group in groups for text in group))


def _refuse_cut(call: Call, truncate: bool | None) -> None:
    if truncate is False and call.seen.truncated:
        limit = call.service.reranker.max_length
        raise Refusal(413, f"text {call.seen.truncated[0]} and the query have more than {limit:,} tokens together, the model's limit")


def _is_coheres(value: Any) -> bool:
    return isinstance(value, dict) and "documents" in value and "texts" not in value


OPERATIONS = (
    Operation(
        "POST",
        "/rerank",
        "tei",
        "Order texts by a query; a body with documents is Cohere's.",
        rerank,
        TeiRerankRequest,
        list[Rank],
        computes=True,
        other=cohere.operation("/rerank", "2"),
        is_others=_is_coheres,
    ),
    Operation(
        "POST",
        "/predict",
        "tei",
        "Label texts or pairs.",
        predict,
        PredictRequest,
        list[Prediction] | list[list[Prediction]],
        computes=True,
    ),
)
