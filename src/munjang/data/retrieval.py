"""Retrieval sets → a `RetrievalTask`: BEIR folders, the Cranfield collection, SQuAD JSON; and TREC's judgements and runs, read and written.

BEIR: a document's text is its title, a space and its text; only queries judged in the split are kept; any of its files may be gzip.
Cranfield's files are not well-formed XML (many roots, bare ampersands), so tags are found by pattern and nothing is resolved or fetched;
the judgements count queries from 1 in file order, and the <num> of a topic is another number that is not used. SQuAD (KorQuAD,
TyDiQA-GoldP): a question's only relevant document is its paragraph, grade 1; equal paragraphs are one document, since no search could tell
them apart.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from munjang.data.files import get_file_kind, read_json, read_text
from munjang.data.rows import RetrievalTask, Run, rank_documents
from munjang.errors import InputError, UsageError, quote
from munjang.wording import count, plural


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Return query → document → grade; a document judged twice for one query is an error."""
    result: dict[str, dict[str, int]] = {}
    for line, (query, _, document, grade) in _split_lines(path, 4):
        of_query = result.setdefault(query, {})
        if document in of_query:
            raise InputError(f"{Path(path).name} line {line}: document {quote(document)} is judged twice for query {quote(query)}")
        of_query[document] = _parse_grade(grade, path, line)
    return result


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Return query → document → score; the rank column is not used, as in trec_eval."""
    result: dict[str, dict[str, float]] = {}
    for line, (query, _, document, _, score, _) in _split_lines(path, 6):
        of_query = result.setdefault(query, {})
        if document in of_query:
            raise InputError(f"{Path(path).name} line {line}: document {quote(document)} is ranked twice for query {quote(query)}")
        try:
            of_query[document] = float(score)
        except ValueError:
            raise InputError(f"{Path(path).name} line {line}: the score is {quote(score, 30)}, expected a number") from None
    return result


def write_run(path: str | Path, run: Run, *, tag: str = "munjang") -> None:
    """Write a run so that `read_run` and trec_eval read back the same scores and order."""
    lines = []
    for query, scores in run.items():
        for rank, document in enumerate(rank_documents(scores), start=1):
            if any(not part or any(ch.isspace() for ch in part) for part in (query, document, tag)):
                raise UsageError(f"query {quote(query)}, document {quote(document)}: TREC ids hold no white space")
            lines.append(f"{query} Q0 {document} {rank} {float(scores[document])!r} {tag}\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def _split_lines(path: str | Path, count: int) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(read_text(path).splitlines(), start=1):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != count:
            raise InputError(f"{Path(path).name} line {line}: {len(fields)} fields, expected {count} separated by spaces")
        yield line, fields


def _parse_grade(text: str, path: str | Path, line: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{Path(path).name} line {line}: the grade is {quote(text, 30)}, expected a whole number") from None


def read_beir(folder: str | Path, *, split: str = "test") -> RetrievalTask:
    """Return the corpus, and the queries and judgements of one split; every judgement names a known query and document."""
    root = Path(folder)
    corpus = {
        key: f"{item.get('title') or ''} {item['text']}".strip() for key, item in _read_records(_find_file(root / "corpus.jsonl")).items()
    }
    queries = {key: str(item["text"]) for key, item in _read_records(_find_file(root / "queries.jsonl")).items()}
    judgements = _read_judgements(_find_file(root / "qrels" / f"{split}.tsv"), corpus, queries)
    return RetrievalTask(corpus, {query: queries[query] for query in judgements}, judgements, root.name, f"beir ({split})")


def is_beir(folder: str | Path) -> bool:
    """Tell whether a folder is laid out as BEIR's."""
    root = Path(folder)
    return any((root / f"corpus.jsonl{end}").is_file() for end in ("", ".gz")) and (root / "qrels").is_dir()


def _find_file(file: Path) -> Path:
    zipped = file.with_name(file.name + ".gz")
    if file.is_file():
        return file
    if zipped.is_file():
        return zipped
    there = sorted(path.name for path in file.parent.glob("*.tsv*")) if file.parent.name == "qrels" else []
    raise InputError(f"{file.parent.name}: no {file.name}, expected a BEIR folder" + (f"\n  there is {', '.join(there)}" if there else ""))


def _read_records(file: Path) -> dict[str, dict[str, object]]:
    result: dict[str, dict[str, object]] = {}
    # Only "\n" ends a JSON line: texts may hold U+2028 and its like.
    for line, text in enumerate(read_text(file).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            item = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise InputError(f"{file.name} line {line}: not JSON") from None
        if not isinstance(item, dict) or not isinstance(item.get("_id"), (str, int)) or not isinstance(item.get("text"), str):
            raise InputError(f'{file.name} line {line}: expected an object with "_id" and "text"')
        if str(item["_id"]) in result:
            raise InputError(f"{file.name} line {line}: the id {quote(str(item['_id']))} occurs twice")
        result[str(item["_id"])] = item
    return result


def _read_judgements(file: Path, corpus: dict[str, str], queries: dict[str, str]) -> dict[str, dict[str, int]]:
    result: dict[str, dict[str, int]] = {}
    for line, text in enumerate(read_text(file).splitlines(), start=1):
        fields = text.split("\t")
        if not text.strip() or (line == 1 and fields[-1].strip() == "score"):
            continue
        if len(fields) != 3 or not fields[2].strip().lstrip("-").isdigit():
            raise InputError(f"{file.name} line {line}: expected query-id, corpus-id and a whole score, separated by tabs")
        query, document, grade = fields[0], fields[1], int(fields[2])
        if query not in queries or document not in corpus:
            lost = f"query {quote(query)}" if query not in queries else f"document {quote(document)}"
            raise InputError(f"{file.name} line {line}: {lost} is judged but not in the folder")
        result.setdefault(query, {})[document] = grade
    return result


_NUMBERED = "queries are numbered by their place in the file, as the judgements do"


def read_cranfield(documents: str | Path, queries: str | Path, judgements: str | Path) -> RetrievalTask:
    """Return all documents, also those without text, all queries, and the grades."""
    corpus = {_read_tag(doc, "docno", documents): _read_tag(doc, "text", documents) for doc in _find_blocks(read_text(documents), "doc")}
    asked = {str(place): _read_tag(top, "title", queries) for place, top in enumerate(_find_blocks(read_text(queries), "top"), start=1)}
    if not corpus or not asked:
        raise InputError(f"{Path(documents).name}, {Path(queries).name}: no <doc> or no <top> found, expected TREC XML")
    grades = read_qrels(judgements)
    strangers = sorted(set(grades) - set(asked))
    if strangers:
        raise InputError(f"{Path(judgements).name}: query {strangers[0]} is judged, but there are only {len(asked)} queries")
    empty = sum(not text for text in corpus.values())
    notes = (_NUMBERED, *([f"{count(empty, 'document')} {plural(empty, 'has')} no text"] if empty else []))
    return RetrievalTask(corpus, asked, grades, Path(documents).name, "cranfield", notes)


def is_cranfield(folder: str | Path) -> bool:
    """Tell whether a folder holds the collection under its usual names."""
    return len(list(Path(folder).glob("cran.all*.xml*"))) == 1


def read_cranfield_folder(folder: str | Path) -> RetrievalTask:
    """Return the collection from a folder with cran.all*.xml, cran.qry.xml and cranqrel*."""
    found = []
    for pattern in ("cran.all*.xml*", "cran.qry.xml*", "cranqrel*"):
        files = sorted(Path(folder).glob(pattern))
        if len(files) != 1:
            raise InputError(f"{Path(folder).name}: {len(files)} files {pattern}, expected one")
        found.append(files[0])
    return read_cranfield(*found)


def _find_blocks(text: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)


def _read_tag(block: str, tag: str, path: str | Path) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", block, flags=re.DOTALL)
    if found is None:
        raise InputError(f"{Path(path).name}: an entry without <{tag}>")
    return " ".join(html.unescape(found.group(1)).split())


def read_squad(path: str | Path) -> RetrievalTask:
    """Return every question as a query over every distinct paragraph."""
    name = Path(path).name
    corpus: dict[str, str] = {}
    queries: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    ids: dict[str, str] = {}
    merged = 0
    for context, asked in _list_paragraphs(read_json(path), name):
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


def _list_paragraphs(value: Any, name: str) -> list[tuple[str, list[dict[str, Any]]]]:
    try:
        found = [(paragraph["context"], list(paragraph["qas"])) for article in value["data"] for paragraph in article["paragraphs"]]
        good = all(isinstance(c, str) and all(isinstance(q["question"], str) for q in asked) for c, asked in found)
    except (KeyError, TypeError, IndexError):
        good = False
    if not good:
        raise InputError(f"{name}: expected SQuAD JSON: data → paragraphs → context and qas → question")
    return found


def read_retrieval(path: str | Path, *, split: str = "test") -> RetrievalTask:
    """Return the task at a path; `split` chooses the judgements of a BEIR folder."""
    where = Path(path)
    if where.is_dir():
        if is_beir(where):
            return read_beir(where, split=split)
        if is_cranfield(where):
            return read_cranfield_folder(where)
        raise InputError(f"{where.name}: neither corpus.jsonl with qrels/ nor cran.all*.xml is there, expected a retrieval folder")
    if get_file_kind(where) == "json":
        return read_squad(where)
    raise InputError(f"{where.name}: expected a BEIR folder, the Cranfield folder or SQuAD JSON")
