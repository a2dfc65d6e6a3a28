"""What people add → documents: an id, a clean text, metadata that JSON can hold.

A record is a text, a mapping with "text" (and maybe "id" and "metadata"; other keys join the metadata), or a `Record` of a reader. Records
come in a list, an iterator, a column of texts, or a data frame with the column "text", whose rows are such mappings. Texts and the strings
in metadata are put into NFC without NUL, so that a filter finds what looks the same. An id is never changed, only refused. A record without
an id goes on without one, and gets it from its text when it is added (`content_ids`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, TypeAlias

import numpy as np

from munjang.errors import InputError, TextError, UsageError, quote
from munjang.library.store import Document, Metadata, content_hash
from munjang.limits import LIMITS, Limits
from munjang.text.records import BadLines, Record, list_names
from munjang.text.unicode import clean
from munjang.text.validate_texts import is_missing, is_table, list_columns, read_series, read_table_rows, validate_items
from munjang.wording import count

Incoming: TypeAlias = str | Mapping[str, Any] | Record
Records: TypeAlias = Iterable[Incoming] | Any
"""Records one by one; or a data frame of pandas or polars, which are never imported and so cannot be named here."""

MAX_DEPTH = 20


def documents(records: Records, *, limits: Limits = LIMITS, bad: BadLines | None = None) -> Iterator[Document]:
    """Return a document for each record; an error says which record it is. With `bad` such records are counted there and passed over.

    >>> [each] = documents([{"id": 7, "text": "rain", "year": 2020}])
    >>> each.id, each.text, each.metadata
    ('7', 'rain', {'year': 2020})
    """
    return _documents(_table_records(records) if is_table(records) else _list_records(records), limits, bad)


def _table_records(table: Any) -> Iterator[tuple[str, Incoming]]:
    names = list_columns(table)
    if "text" not in names:
        advice = 'call the column that holds the texts so: df.rename(columns={…: "text"})'
        raise InputError(f'the {type(table).__name__} has {list_names(names)}, expected a column "text"\n  {advice}')
    return ((f"row {number:,} (from 0)", row) for number, row in enumerate(read_table_rows(table)))


def _list_records(records: object) -> Iterator[tuple[str, Any]]:
    if isinstance(records, Record):
        raise UsageError("records is one Record, expected a list of records\n  put it in a list")
    items: Iterable[Any] = read_series(records) or validate_items(records, name="records", one="record")
    numbered = enumerate(items, start=1)
    return ((record.where if isinstance(record, Record) else f"record {number:,}", record) for number, record in numbered)


def _documents(records: Iterator[tuple[str, Incoming]], limits: Limits, bad: BadLines | None) -> Iterator[Document]:
    for where, record in records:
        try:
            made = _document(record, limits)
        except (InputError, TextError) as error:
            if bad is None:
                raise type(error)(f"{where}: {error}") from None
            bad.add(where, error)
        else:
            yield made


def _document(record: Incoming, limits: Limits) -> Document:
    id, text, metadata = _parts(record)
    if is_missing(text):
        raise InputError('"text" is missing, expected a text\n  fill it, or leave the record out, such as with df.dropna(subset=["text"])')
    if isinstance(id, float):
        found = f"the id is {id:g} (float), expected a text or a whole number"
        raise InputError(f'{found}\n  pandas makes floats of whole numbers where one is missing: df["id"].astype("Int64")')
    if not isinstance(text, str):
        raise InputError(f'"text" is a {type(text).__name__}, expected a text')
    text = clean(text, limits=limits)
    if not text.strip():
        raise TextError("the text is empty, expected something to find\n  leave the record out")
    hashed = content_hash(text)
    return Document("" if id is None else check_id(str(id), limits=limits), text, _metadata(metadata, limits), hashed)


def _parts(record: Incoming) -> tuple[object, object, Mapping[str, Any]]:
    if isinstance(record, str):
        return None, record, {}
    if isinstance(record, Record):
        return record.id, record.text, record.metadata
    if not isinstance(record, Mapping):
        raise InputError(f'found a {type(record).__name__}, expected a text or a mapping with "text"')
    if "text" not in record:
        raise InputError(f'found the keys {", ".join(quote(str(key)) for key in list(record)[:10])}, expected "text" among them')
    own = record.get("metadata")
    rest = {key: value for key, value in record.items() if key not in ("id", "text", "metadata")}
    if isinstance(own, Mapping):
        rest |= own
    elif own is not None:
        rest["metadata"] = own
    return record.get("id"), record["text"], rest


def check_id(id: str, *, limits: Limits = LIMITS) -> str:
    """Return an id as it is, or refuse one that not every store can hold."""
    try:
        size = len(id.encode())
    except UnicodeEncodeError:
        raise InputError(f"the id {quote(id)} holds a lone surrogate, expected Unicode text") from None
    if not id or "\x00" in id or size > limits.max_id_bytes:
        raise InputError(f"the id {quote(id)} has {count(size, 'byte')}, expected 1 to {limits.max_id_bytes:,}, and no NUL among them")
    return id


def storable(id: str) -> bool:
    """Say whether a document could have this id at all."""
    return "\x00" not in id and not any("\ud800" <= ch <= "\udfff" for ch in id)


def _metadata(metadata: Mapping[str, Any], limits: Limits) -> Metadata:
    cleaned: Metadata = {_key(key): _clean_json(value, 1) for key, value in metadata.items()}
    size = len(json.dumps(cleaned, ensure_ascii=False).encode())
    if size > limits.max_metadata_bytes:
        raise InputError(
            f"the metadata have {count(size, 'byte')}, the limit is {limits.max_metadata_bytes:,}\n  keep long texts elsewhere"
        )
    return cleaned


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"a key of the metadata is a {type(key).__name__}, expected a text")
    return clean(key)


def _clean_json(value: object, depth: int) -> Any:
    """Return a JSON value with clean strings, or refuse what JSON cannot hold."""
    if depth > MAX_DEPTH:
        raise InputError(f"the metadata are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, int):
        raise InputError(f"the metadata hold {quote(repr(value))}, expected whole numbers of at most 64 bits\n  write it as a text")
    if isinstance(value, float) and abs(value) < float("inf"):
        return float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if hasattr(type(value), "dtype") and hasattr(type(value), "tolist"):  # a number or an array of numpy
        return _clean_json(_from_numpy(value), depth)
    if isinstance(value, list | tuple):
        return [_clean_json(each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        return {_key(key): _clean_json(each, depth + 1) for key, each in value.items()}
    found = f"the metadata hold {quote(repr(value))} ({type(value).__name__}), expected what JSON can hold"
    raise InputError(f"{found}\n  make it a text or a number, or leave it out")


def _from_numpy(value: Any) -> object:
    """Return the Python value of a scalar or an array of numpy; times are texts, since numpy would make numbers of some."""
    if value.dtype.kind not in "mM":
        return value.tolist()
    texts = np.datetime_as_string(value).tolist() if value.dtype.kind == "M" else value.astype(str).tolist()
    return None if texts == "NaT" else texts
