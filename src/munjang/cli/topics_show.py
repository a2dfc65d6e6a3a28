"""How `munjang topics` shows a model: facts, a table, JSON, and the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.atomic import atomic_write
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.report.words import Word, say

if TYPE_CHECKING:
    from munjang.analyze.topics.describe import Slices
    from munjang.analyze.topics.model import Topic, TopicModel
    from munjang.wording import Language


def model_facts(model: TopicModel, **more: Any) -> dict[str, Any]:
    """Return what JSON output says of a model."""
    return {
        "documents": model.size,
        "outliers": model.outliers,
        "outlier_share": round(model.outliers / model.size, 6),
        "coherence_npmi": round(model.coherence, 6),
        "diversity": round(model.diversity, 6),
        "topics": [topic_facts(model, topic) for topic in model.topics],
        **more,
    }


def topic_facts(model: TopicModel, topic: Topic) -> dict[str, Any]:
    """Return what JSON output says of a topic."""
    return {
        "id": topic.id,
        "name": topic.name,
        "size": topic.size,
        "coherence_npmi": round(topic.coherence, 6),
        "words": [{"word": word, "weight": round(weight, 8)} for word, weight in topic.words],
        "documents": [{"row": model.row_number(row), "text": model.documents.excerpts[row]} for row in topic.documents],
    }


def show_model(model: TopicModel, *, as_json: bool, **more: Any) -> None:
    """Print a model: its topics, and how good they are."""
    if as_json:
        emit(model_facts(model, **more))
        return
    rows = ([str(topic.id), f"{topic.size:,}", topic.name, " ".join(word for word, _ in topic.words)] for topic in model.topics)
    print_table(
        ["topic", "documents", "name", "words"],
        rows,
        right=["topic", "documents"],
        empty="no topics: no group of documents is large enough",
    )
    share = model.outliers / model.size
    print_facts(
        [
            ("documents", f"{model.size:,}"),
            ("topics", f"{len(model.topics):,}"),
            ("outliers", f"{model.outliers:,} ({share:.1%})"),
            ("coherence", f"{model.coherence:.3f} (NPMI)"),
            ("diversity", f"{model.diversity:.3f}"),
            *((name, str(value)) for name, value in more.items() if value is not None),
        ]
    )


def show_topic(model: TopicModel, topic: Topic, *, as_json: bool) -> None:
    """Print one topic with its words and typical documents."""
    if as_json:
        emit(topic_facts(model, topic))
        return
    print_facts([("topic", f"{topic.id}  {topic.name}"), ("documents", f"{topic.size:,}"), ("coherence", f"{topic.coherence:.3f} (NPMI)")])
    print_table(["word", "weight"], ([word, f"{weight:.4f}"] for word, weight in topic.words), right=["weight"], empty="no words")
    print_table(
        ["row", "typical documents"],
        ([str(model.row_number(row)), model.documents.excerpts[row]] for row in topic.documents),
        right=["row"],
        empty="no typical documents",
    )


def write_report(
    model: TopicModel,
    path: Path,
    title: str,
    *,
    over_time: Slices | None = None,
    per_class: Slices | None = None,
    language: Language = "en",
) -> None:
    """Write the HTML report."""
    from munjang.report.topics_page import topics_page

    facts = [
        (Word.NUMBER_OF_DOCUMENTS, f"{model.size:,}"),
        (Word.NUMBER_OF_TOPICS, f"{len(model.topics):,}"),
        (Word.OUTLIERS, f"{model.outliers:,} ({model.outliers / model.size:.1%})"),
        (Word.COHERENCE_NPMI, f"{model.coherence:.3f}"),
        (Word.DIVERSITY, f"{model.diversity:.3f}"),
        (Word.METHOD, model.settings.method),
    ]
    written = topics_page(
        title,
        _views(model, language),
        facts=[(say(word, language), value) for word, value in facts],
        joins=_joins(model),
        over_time=_slices(model, over_time),
        per_class=_slices(model, per_class),
        language=language,
    )
    atomic_write(path, written)
    note(f"{path}: written")


def _views(model: TopicModel, language: Language) -> list[Any]:
    from munjang.analyze.topics.assign import place_topics
    from munjang.report.topics_page import TopicView

    places = place_topics(model)
    return [
        TopicView(
            topic.id,
            topic.name if topic.words or topic.id in model.names else say(Word.TOPIC_WITHOUT_WORDS, language, id=topic.id),
            topic.words,
            topic.size,
            [model.documents.excerpts[row] for row in topic.documents],
            topic.coherence,
            places[topic.id],
        )
        for topic in model.topics
    ]


def _joins(model: TopicModel) -> list[Any]:
    """Return the tree with leaves in the order in which topics are listed."""
    from munjang.analyze.topics.assign import build_hierarchy
    from munjang.report.topics_page import JoinView

    listed = [topic.id for topic in model.topics]
    ids = sorted(listed)

    def leaf(node: int) -> int:
        return listed.index(ids[node]) if node < len(ids) else node

    return [JoinView(leaf(join.a), leaf(join.b), join.distance) for join in build_hierarchy(model)]


def _slices(model: TopicModel, slices: Slices | None) -> Any:
    from munjang.report.topics_page import SlicesView

    if slices is None:
        return None
    columns: Sequence[int] = [slices.topics.index(topic.id) for topic in model.topics]
    return SlicesView(slices.names, [[int(counts[column]) for column in columns] for counts in slices.counts_TK])
