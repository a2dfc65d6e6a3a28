"""The model card: README.md with the front matter that model hubs read.

In: what was trained on what, and its scores. Out: text. The base model is named by name, never by a path of the machine it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from munjang.engine.folder import PAIR_CLASSIFIER

LOSSES = {
    "classification": "SoftmaxLoss",
    "regression": "CosineSimilarityLoss",
    "triplet": "TripletLoss",
    "in_batch": "MultipleNegativesRankingLoss",
    "cosent": "CoSENTLoss",
    "angle": "AnglELoss",
    "contrastive": "ContrastiveLoss",
    "online_contrastive": "OnlineContrastiveLoss",
    "distillation": "MSELoss",
    "score_distillation": "DistillKLDivLoss",
    "token_distillation": "MSELoss",
    "late_interaction": "MultipleNegativesRankingLoss",
    "maxsim": "MultiVectorMultipleNegativesRankingLoss",
    "maxsim_scores": "MultiVectorDistillKLDivLoss",
    "margin_mse": "MarginMSELoss",
    "matryoshka": "MatryoshkaLoss",
    "mlm": "MaskedLanguageModeling",
    "tsdae": "DenoisingAutoEncoderLoss",
    "simcse": "MultipleNegativesRankingLoss",
    "mse": "MSELoss",
    "bce": "BinaryCrossEntropyLoss",
    "cross_entropy": "CrossEntropyLoss",
    "multiple_negatives": "MultipleNegativesRankingLoss",
    "listnet": "ListNetLoss",
    "lambdaloss": "LambdaLoss",
    "ranknet": "RankNetLoss",
}
"""What the ecosystem calls each objective."""


@dataclass(frozen=True)
class DataFact:
    """One data file: its name, its rows, and what was learnt from it."""

    name: str
    rows: int
    objective: str
    described: str


@dataclass(frozen=True)
class ScoreFact:
    """What the model scores on one file."""

    file: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class CardFacts:
    """What a card says. A cross-encoder has `labels`, and no pooling."""

    name: str
    base: str
    dimension: int
    max_length: int
    pooling: str
    data: Sequence[DataFact]
    dev: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    metric: str | None = None
    tests: Sequence[ScoreFact] = ()
    """Scores of the last stage on files that had no say in the training."""
    language: str | None = None
    license: str | None = None
    settings: Sequence[str] = ()
    warnings: Sequence[str] = ()
    """What is wrong with the training that made the model."""
    labels: Sequence[str] = ()
    classes: Sequence[str] = ()
    """The labels of the classifier that is kept beside a sentence encoder."""
    over_tokens: bool = False
    """A multi-vector model."""


def make_card(facts: CardFacts) -> str:
    """Return README.md."""
    return f"---\n{_make_front_matter(facts)}---\n\n{_make_body(facts)}"


def _make_front_matter(facts: CardFacts) -> str:
    rows = sum(data.rows for data in facts.data)
    losses = dict.fromkeys(LOSSES.get(data.objective, data.objective) for data in facts.data)
    what = ["cross-encoder", *(["reranker"] if len(facts.labels) == 1 else [])]
    tags = what if facts.labels else ["sentence-similarity", "feature-extraction", "dense"]
    tags = ["multi-vector", "colbert", "late-interaction"] if facts.over_tokens else tags
    tags = ["sentence-transformers", *tags, "generated_from_trainer", f"dataset_size:{rows}"]
    pipeline = "sentence-similarity" if not facts.labels else "text-ranking" if len(facts.labels) == 1 else "text-classification"
    pipeline = "feature-extraction" if facts.over_tokens else pipeline
    lines = [f"language: {_quote_yaml(facts.language)}"] if facts.language else []
    lines += [f"license: {_quote_yaml(facts.license)}"] if facts.license else []
    lines += ["tags:", *(f"- {_quote_yaml(tag)}" for tag in [*tags, *(f"loss:{loss}" for loss in losses)])]
    lines += [f"base_model: {_quote_yaml(facts.base)}", f"pipeline_tag: {pipeline}", "library_name: sentence-transformers"]
    measured = _list_scores(facts)
    if measured:
        lines += ["metrics:", *(f"- {name}" for name in dict.fromkeys(name for fact in measured for name in fact.scores))]
        lines += ["model-index:", f"- name: {_quote_yaml(facts.name)}", "  results:"]
    for fact in measured:
        lines += ["  - task:", f"      type: {_name_task(facts, pipeline)}"]
        lines += ["    dataset:", f"      name: {_quote_yaml(fact.file)}", f"      type: {_quote_yaml(fact.file)}", "    metrics:"]
        for name, value in fact.scores.items():
            lines += [f"    - type: {name}", f"      value: {value!r}", f"      name: {name}"]
    return "".join(line + "\n" for line in lines)


def _name_task(facts: CardFacts, pipeline: str) -> str:
    """Return what a score measures, as model hubs call it."""
    return pipeline if facts.labels else "information-retrieval" if facts.over_tokens else "semantic-similarity"


def _list_scores(facts: CardFacts) -> list[ScoreFact]:
    """Return the scores on the dev file, if there is one, and on test files."""
    return [*([ScoreFact(facts.dev or "", facts.scores)] if facts.scores else []), *facts.tests]


def _make_body(facts: CardFacts) -> str:
    lines = [
        f"# {facts.name}",
        "",
        _describe_model(facts),
        f"Trained with Munjang from {facts.base}.",
        "",
        *(line for warning in facts.warnings for line in (f"> {warning}", "")),
        "## Data and objectives",
        "",
        "| file | rows | objective |",
        "|---|---|---|",
        *(f"| {_escape_cell(data.name)} | {data.rows:,} | {_escape_cell(data.described)} |" for data in facts.data),
        "",
    ]
    for fact in _list_scores(facts):
        lines += [f"## Scores on {fact.file}", "", "| measure | value |", "|---|---|"]
        lines += [*(f"| {name} | {value:.4f} |" for name, value in fact.scores.items()), ""]
    lines += ["## Settings", "", *(f"- {line}" for line in facts.settings), ""]
    name, call = (
        ("MultiVectorEncoder", 'query, document = model.encode_query(["비가 오나?"]), model.encode_document(["It is raining"])')
        if facts.over_tokens
        else ("CrossEncoder", 'scores = model.predict([("It is raining", "비가 온다")])')
        if facts.labels
        else ("SentenceEncoder", 'vectors = model.encode(["It is raining", "비가 온다"])')
    )
    lines += ["## Use", "", "```python", f"from munjang import {name}", "", f'model = {name}.load("path/to/this/folder")', call, "```", ""]
    if facts.classes:
        lines += [f"The folder `{PAIR_CLASSIFIER}` holds the classifier of the training ({', '.join(facts.classes)}):", ""]
        lines += ["```python", "from munjang import PairClassifier", "", 'classifier = PairClassifier.load("path/to/this/folder")']
        lines += ['classifier.predict_with_report([("It is raining", "비가 온다")]).predicted', "```", ""]
    return "\n".join(lines)


def _describe_model(facts: CardFacts) -> str:
    cut = f"texts are cut at {facts.max_length} tokens"
    if facts.over_tokens:
        return f"Maps every token of a text to a vector of {facts.dimension} numbers, to be compared by MaxSim; {cut}."
    if not facts.labels:
        return f"Maps a sentence to a vector of {facts.dimension} numbers; {cut}; {facts.pooling} pooling."
    gives = "one number" if len(facts.labels) == 1 else f"one number each for {', '.join(facts.labels)}"
    return f"Scores a pair of sentences: {gives}; pairs are cut at {facts.max_length} tokens, at the end of the second sentence."


def _quote_yaml(value: str | None) -> str:
    """Return a YAML string; JSON's strings are YAML's."""
    return json.dumps(value, ensure_ascii=False)


def _escape_cell(value: str) -> str:
    return value.replace("|", "\\|")
