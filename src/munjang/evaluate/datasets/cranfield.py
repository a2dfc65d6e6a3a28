"""The Cranfield collection (documents and topics in TREC's XML, judgements in TREC's lines) → a retrieval task.

The files are not well-formed XML (many roots, bare ampersands), so tags are found by pattern; nothing is ever resolved or fetched.
The judgements count queries from 1 in file order; the <num> of a topic is another number and is not used.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from munjang.errors import InputError
from munjang.evaluate.datasets.opened import whole_text
from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.evaluate.datasets.trec import read_qrels
from munjang.wording import count, plural

_NUMBERED = "queries are numbered by their place in the file, as the judgements do"


def read_cranfield(documents: str | Path, queries: str | Path, judgements: str | Path) -> RetrievalTask:
    """Return all documents, also those without text, all queries, and the grades."""
    corpus = {_tag(doc, "docno", documents): _tag(doc, "text", documents) for doc in _blocks(whole_text(documents), "doc")}
    asked = {str(place): _tag(top, "title", queries) for place, top in enumerate(_blocks(whole_text(queries), "top"), start=1)}
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


def _blocks(text: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)


def _tag(block: str, tag: str, path: str | Path) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", block, flags=re.DOTALL)
    if found is None:
        raise InputError(f"{Path(path).name}: an entry without <{tag}>")
    return " ".join(html.unescape(found.group(1)).split())
