"""A BEIR folder (corpus.jsonl, queries.jsonl, qrels/<split>.tsv) → a retrieval task.

A document's text is its title, a space, and its text, as BEIR does. Only queries judged in the split are kept. Any of the files may be
gzip.
"""

from __future__ import annotations

import json
from pathlib import Path

from munjang.errors import InputError, shown
from munjang.evaluate.datasets.opened import whole_text
from munjang.evaluate.datasets.rows import RetrievalTask


def read_beir(folder: str | Path, *, split: str = "test") -> RetrievalTask:
    """Return the corpus, and the queries and judgements of one split; every judgement names a known query and document."""
    root = Path(folder)
    corpus = {key: f"{item.get('title') or ''} {item['text']}".strip() for key, item in _records(_present(root / "corpus.jsonl")).items()}
    queries = {key: str(item["text"]) for key, item in _records(_present(root / "queries.jsonl")).items()}
    judgements = _judgements(_present(root / "qrels" / f"{split}.tsv"), corpus, queries)
    return RetrievalTask(corpus, {query: queries[query] for query in judgements}, judgements, root.name, f"beir ({split})")


def is_beir(folder: str | Path) -> bool:
    """Tell whether a folder is laid out as BEIR's."""
    root = Path(folder)
    return any((root / f"corpus.jsonl{end}").is_file() for end in ("", ".gz")) and (root / "qrels").is_dir()


def _present(file: Path) -> Path:
    zipped = file.with_name(file.name + ".gz")
    if file.is_file():
        return file
    if zipped.is_file():
        return zipped
    there = sorted(path.name for path in file.parent.glob("*.tsv*")) if file.parent.name == "qrels" else []
    raise InputError(f"{file.parent.name}: no {file.name}, expected a BEIR folder" + (f"\n  there is {', '.join(there)}" if there else ""))


def _records(file: Path) -> dict[str, dict[str, object]]:
    result: dict[str, dict[str, object]] = {}
    # Only "\n" ends a JSON line: texts may hold U+2028 and its like.
    for line, text in enumerate(whole_text(file).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            item = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise InputError(f"{file.name} line {line}: not JSON") from None
        if not isinstance(item, dict) or not isinstance(item.get("_id"), (str, int)) or not isinstance(item.get("text"), str):
            raise InputError(f'{file.name} line {line}: expected an object with "_id" and "text"')
        if str(item["_id"]) in result:
            raise InputError(f"{file.name} line {line}: the id {shown(str(item['_id']))} occurs twice")
        result[str(item["_id"])] = item
    return result


def _judgements(file: Path, corpus: dict[str, str], queries: dict[str, str]) -> dict[str, dict[str, int]]:
    result: dict[str, dict[str, int]] = {}
    for line, text in enumerate(whole_text(file).splitlines(), start=1):
        fields = text.split("\t")
        if not text.strip() or (line == 1 and fields[-1].strip() == "score"):
            continue
        if len(fields) != 3 or not fields[2].strip().lstrip("-").isdigit():
            raise InputError(f"{file.name} line {line}: expected query-id, corpus-id and a whole score, separated by tabs")
        query, document, grade = fields[0], fields[1], int(fields[2])
        if query not in queries or document not in corpus:
            lost = f"query {shown(query)}" if query not in queries else f"document {shown(document)}"
            raise InputError(f"{file.name} line {line}: {lost} is judged but not in the folder")
        result.setdefault(query, {})[document] = grade
    return result
