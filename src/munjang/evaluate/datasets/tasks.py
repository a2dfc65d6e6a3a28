"""A path → a retrieval task, whichever of the known forms it has: a BEIR folder, the Cranfield folder, SQuAD JSON."""

from __future__ import annotations

from pathlib import Path

from munjang.errors import InputError
from munjang.evaluate.datasets.beir import is_beir, read_beir
from munjang.evaluate.datasets.cranfield import is_cranfield, read_cranfield_folder
from munjang.evaluate.datasets.opened import file_kind
from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.evaluate.datasets.squad import read_squad


def read_retrieval(path: str | Path, *, split: str = "test") -> RetrievalTask:
    """Return the task at a path; `split` chooses the judgements of a BEIR folder."""
    where = Path(path)
    if where.is_dir():
        if is_beir(where):
            return read_beir(where, split=split)
        if is_cranfield(where):
            return read_cranfield_folder(where)
        raise InputError(f"{where.name}: neither corpus.jsonl with qrels/ nor cran.all*.xml is there, expected a retrieval folder")
    if file_kind(where) == "json":
        return read_squad(where)
    raise InputError(f"{where.name}: expected a BEIR folder, the Cranfield folder or SQuAD JSON")
