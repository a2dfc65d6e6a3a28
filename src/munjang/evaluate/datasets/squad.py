"""Questions on paragraphs (SQuAD JSON: KorQuAD, TyDiQA-GoldP) → a retrieval task: find the paragraph that a question was asked about.

Equal paragraphs are one document, since no search could tell them apart. A question's only relevant document is its paragraph, grade 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from munjang.errors import InputError
from munjang.evaluate.datasets.opened import whole_json
from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.wording import count


def read_squad(path: str | Path) -> RetrievalTask:
    """Return every question as a query over every distinct paragraph."""
    name = Path(path).name
    corpus: dict[str, str] = {}
    queries: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    ids: dict[str, str] = {}
    merged = 0
    for context, asked in _paragraphs(whole_json(path), name):
        merged += context in ids
        document = ids.setdefault(context, f"p{len(ids)}")
        corpus[document] = context
        for question in asked:
            query = str(question.get("id", ""))
            if not query or query in queries:
                query = f"{query}#{len(queries)}"  # TyDiQA uses some ids twice
            queries[query] = question["question"]
            judgements[query] = {document: 1}
    notes = (f"{count(merged, 'paragraph')} merged with an equal one before",) if merged else ()
    return RetrievalTask(corpus, queries, judgements, name, "squad", notes)


def _paragraphs(value: Any, name: str) -> list[tuple[str, list[dict[str, Any]]]]:
    try:
        found = [(paragraph["context"], list(paragraph["qas"])) for article in value["data"] for paragraph in article["paragraphs"]]
        good = all(isinstance(c, str) and all(isinstance(q["question"], str) for q in asked) for c, asked in found)
    except (KeyError, TypeError, IndexError):
        good = False
    if not good:
        raise InputError(f"{name}: expected SQuAD JSON: data → paragraphs → context and qas → question")
    return found
