"""Munjang's own route for labels, and labels for the dialect of text-embeddings-inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from munjang.analyze.classify.apply import TextLabels, apply_classifier
from munjang.analyze.classify.classifier import TextClassifier
from munjang.analyze.classify.fitting import fit_classifier
from munjang.analyze.classify.labels import Label
from munjang.analyze.classify.zero_shot import make_classifier
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.collection import Collection, check_short, collection_of
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts
from munjang.serve.schemas.base import options_in
from munjang.serve.schemas.classify import ClassifyOut, ClassifyRequest, LabelIn
from munjang.serve.service import ServedClassifier
from munjang.text.unicode import clean
from munjang.types import Vectors
from munjang.vectors.similarity import normalize

SHOWN_CHARACTERS = 200
"""Of a text beside its label."""
WAYS = ("labels", "examples", "classifier")


async def classify(call: Call, body: ClassifyRequest) -> Reply:
    """Label texts, by names of labels, by examples, or by a served classifier."""
    if sum(getattr(body, way) is not None for way in WAYS) != 1:
        raise Refusal(422, f"expected one of {', '.join(WAYS)}", field="labels")
    served = call.service.find_classifier(body.classifier) if body.classifier is not None else None
    if served is not None:
        call.model = served.encoder.name
    given = await collection_of(call, body)
    if served is not None:
        _refuse_other_model(served, given.model)
    examples_ND = await _encode_examples(call, body, given.model)
    if body.labels is not None:
        await check_short(call, [_written(each) for each in body.labels], given.model, field="labels")

    def work() -> tuple[TextClassifier, TextLabels]:
        made = served.made if served is not None else _make(body, given, examples_ND)
        return made, apply_classifier(made, given.texts, **options_in(body, apply_classifier), vectors=given.vectors_ND)

    made, found = await call.service.in_analysis_thread(call.errand, work)
    accuracy = made.held_out.accuracy
    answer = {
        "names": found.names,
        "results": [asdict(each) for each in found],
        "accuracy": accuracy if accuracy == accuracy else None,
        "abstention": None if found.abstention is None else found.abstention.facts(),
        "ids": given.ids,
        "texts": [clean(text)[:SHOWN_CHARACTERS] for text in given.texts],
        "truncated": call.seen.truncated,
    }
    return Reply(answer, headers=call.truncation_headers())


async def labelled(call: Call, texts: Sequence[str], *, raw: bool, cut: bool) -> list[list[dict[str, Any]]]:
    """Return all labels of each text with their probabilities, best first, by the served classifier."""
    known = call.model if call.model in call.service.classifiers else None
    served = call.service.find_classifier(known or next(iter(call.service.classifiers)))
    model = served.encoder
    encoded = await call.service.in_thread(call.errand, lambda: model.encode_with_report(texts), texts=len(texts))
    call.note(texts=len(texts), tokens=int(encoded.tokens.sum()), truncated=encoded.too_long)
    if encoded.too_long and not cut:
        raise Refusal(422, f"text {encoded.too_long[0]} has more than {model.max_length:,} tokens, the model's limit")
    if raw:
        scores = served.made.head.scores(normalize(encoded.vectors)) / served.made.temperature
    else:
        scores = apply_classifier(served.made, texts, vectors=encoded.vectors).probability_NC
    rows = [[{"label": name, "score": float(score)} for name, score in zip(served.made.labels, row, strict=True)] for row in scores]
    return [sorted(row, key=lambda each: -each["score"]) for row in rows]


async def _encode_examples(call: Call, body: ClassifyRequest, model: SentenceEncoder) -> Vectors | None:
    if body.examples is None:
        return None
    texts = [each.text for each in body.examples]
    check_texts(call, texts, field="examples", limit=call.service.settings.limits.max_analysed_texts)
    found = await call.service.in_thread(call.errand, lambda: model.encode_with_report(texts), texts=len(texts))
    return found.vectors


def _make(body: ClassifyRequest, given: Collection, examples_ND: Vectors | None) -> TextClassifier:
    if body.examples is not None:
        multi = bool(options_in(body, make_classifier)["multi"])
        labels: list[Any] = [[each.label] if multi else each.label for each in body.examples]
        return fit_classifier([each.text for each in body.examples], labels, multi=multi, vectors=examples_ND)
    named = [each if isinstance(each, str) else Label(each.name, each.description, tuple(each.words)) for each in body.labels or ()]
    return make_classifier(named, given.model.with_prompt(warn=False), **options_in(body, make_classifier), vectors=given.vectors_ND)


def _written(label: str | LabelIn) -> str:
    return label if isinstance(label, str) else max((label.name, label.description, *label.words), key=len)


def _refuse_other_model(served: ServedClassifier, model: SentenceEncoder) -> None:
    if model.fingerprint != served.made.encoder:
        raise Refusal(409, f"the library's vectors are of the model {model.name}, the classifier reads those of {served.encoder.name}")


OPERATIONS = (
    Operation("POST", "/api/classify", "munjang", "The label of each text.", classify, ClassifyRequest, ClassifyOut, computes=True),
)
"""Routes."""
