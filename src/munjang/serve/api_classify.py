"""Munjang's own route for labels (by their names, by examples, or by a classifier that the server has), and labels for the dialect of
text-embeddings-inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

from pydantic import Field

from munjang.analyze.classify.apply import TextLabels, apply_classifier
from munjang.analyze.classify.classifier import TextClassifier
from munjang.analyze.classify.fitting import fit_classifier
from munjang.analyze.classify.labels import Label
from munjang.analyze.classify.zero_shot import classify_texts, make_classifier
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.api_analyze import Collection, CollectionRequest, check_short, collection_of, encode_texts
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts
from munjang.serve.schema import OwnModel, options_in, takes_options
from munjang.text.unicode import clean
from munjang.types import Vectors
from munjang.vectors.similarity import normalize

MOST_LABELS = 1_000


class LabelIn(OwnModel):
    """A label: its name, what its texts are about, and words that are typical of them."""

    name: str
    description: str = ""
    words: Annotated[list[str], Field(default_factory=list, max_length=100)]


class ExampleIn(OwnModel):
    """A text with its label; with `multi` a list of labels, possibly empty."""

    text: str
    label: str | list[str]


@takes_options(classify_texts, fit_classifier, apply_classifier)
class ClassifyRequest(CollectionRequest):
    """Texts or a library to label; and one of: labels, examples, or the name of a served classifier."""

    labels: Annotated[list[str | LabelIn] | None, Field(max_length=MOST_LABELS)] = None
    examples: list[ExampleIn] | None = None
    classifier: str | None = None


class ClassifierOut(OwnModel):
    """A served classifier."""

    name: str
    labels: list[str]
    multi: bool
    """A text may have several labels."""
    examples: int
    accuracy: float | None
    """Of examples that were held out; null where nothing was, or where texts may have several labels."""
    macro_f1: float | None
    """Likewise."""


class ClassifierList(OwnModel):
    """The served classifiers."""

    classifiers: list[ClassifierOut]


class LabelOut(OwnModel):
    """What one text is about."""

    labels: list[str]
    """The answer: one label, several where texts may have several, none where the classifier abstains."""
    probability: float
    """Of the most likely label."""
    guess: str
    """The most likely label."""
    runner_up: str
    """The next one that is no answer; empty where there is none."""
    runner_up_probability: float


class AbstentionOut(OwnModel):
    """What held-out examples say of the precision that was asked for."""

    precision: float
    threshold: float
    held_out_precision: float
    held_out_share: float
    held_out_rows: int


class ClassifyOut(OwnModel):
    """The label of each text."""

    names: list[str]
    """All labels."""
    results: list[LabelOut]
    accuracy: float | None
    """Of examples that were held out; null where nothing was, or where texts may have several labels."""
    macro_f1: float | None
    """Likewise."""
    abstention: AbstentionOut | None
    ids: list[str] | None
    """The documents' ids where a library was labelled."""
    texts: list[str]
    """The beginning of each text."""
    truncated: list[int]


SHOWN_CHARACTERS = 200
"""Of a text beside its label."""
WAYS = ("labels", "examples", "classifier")


async def classify(call: Call, body: ClassifyRequest) -> Reply:
    """Label texts, by names of labels, by examples, or by a served classifier."""
    if sum(getattr(body, way) is not None for way in WAYS) != 1:
        raise Refusal(422, f"expected one of {', '.join(WAYS)}", field="labels")
    served = call.service.find_classifier(body.classifier) if body.classifier is not None else None
    given = await collection_of(call, body, None if served is None else served.encoder)
    if served is not None and given.model.fingerprint != served.made.encoder:  # a library's vectors, which this classifier cannot read
        given = replace(given, vectors_ND=await encode_texts(call, given.texts, served.encoder), model=served.encoder)
    examples_ND = await _encode_examples(call, body, given.model)
    if body.labels is not None:
        await check_short(call, [_written(each) for each in body.labels], given.model, field="labels")

    def work() -> tuple[TextClassifier, TextLabels]:
        made = served.made if served is not None else _make(body, given, examples_ND)
        return made, apply_classifier(made, given.texts, **options_in(body, apply_classifier), vectors=given.vectors_ND)

    made, found = await call.service.in_analysis_thread(call.request_work, work)
    answer = {
        "names": found.names,
        "results": [asdict(each) for each in found],
        "accuracy": None if made.multi else _known(made.held_out.micro_f1),
        "macro_f1": _known(made.held_out.macro_f1),
        "abstention": None if found.abstention is None else found.abstention.facts(),
        "ids": given.ids,
        "texts": [clean(text)[:SHOWN_CHARACTERS] for text in given.texts],
        "truncated": call.seen.truncated,
    }
    return Reply(answer, headers=call.truncation_headers())


async def label_texts(call: Call, texts: Sequence[str], *, raw: bool, cut: bool) -> list[list[dict[str, Any]]]:
    """Return all labels of each text with their probabilities, best first, by the served classifier."""
    known = call.model if call.model in call.service.classifiers else None
    served = call.service.find_classifier(known or next(iter(call.service.classifiers)))
    model = served.encoder
    encoded = await call.service.in_thread(call.request_work, lambda: model.encode_with_report(texts), texts=len(texts))
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
    found = await call.service.in_thread(call.request_work, lambda: model.encode_with_report(texts), texts=len(texts))
    return found.vectors


def _make(body: ClassifyRequest, given: Collection, examples_ND: Vectors | None) -> TextClassifier:
    if body.examples is not None:
        options = options_in(body, fit_classifier)
        labels: list[Any] = [[each.label] if options["multi"] and isinstance(each.label, str) else each.label for each in body.examples]
        return fit_classifier([each.text for each in body.examples], labels, **options, vectors=examples_ND)
    named = [each if isinstance(each, str) else Label(each.name, each.description, tuple(each.words)) for each in body.labels or ()]
    return make_classifier(named, given.model.with_prompt(warn=False), **options_in(body, make_classifier), vectors=given.vectors_ND)


def _known(value: float) -> float | None:
    return value if value == value else None


def _written(label: str | LabelIn) -> str:
    return label if isinstance(label, str) else max((label.name, label.description, *label.words), key=len)


async def listing(call: Call, _body: None) -> Reply:
    """List the served classifiers."""
    found = [
        {
            "name": served.name,
            "labels": served.made.labels,
            "multi": served.made.multi,
            "examples": int(served.made.examples_C.sum()),
            "accuracy": None if served.made.multi else _known(served.made.held_out.micro_f1),
            "macro_f1": _known(served.made.held_out.macro_f1),
        }
        for served in call.service.classifiers.values()
    ]
    return Reply({"classifiers": found})


OPERATIONS = (
    Operation("GET", "/api/classifiers", "munjang", "The served classifiers.", listing, None, ClassifierList),
    Operation("POST", "/api/classify", "munjang", "The label of each text.", classify, ClassifyRequest, ClassifyOut, computes=True),
)
"""Routes."""
