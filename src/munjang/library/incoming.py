"""What people add → documents: an id, a clean text, metadata that JSON can hold.

A record is a text, a mapping with "text" (and maybe "id" and "metadata"; other keys join the metadata), or a `Record` of a reader. Texts
and the strings in metadata are put into NFC without NUL, so that a filter finds what looks the same. An id is never changed, only refused.
A record without an id goes on without one, and gets it from its text when it is added (`content_ids`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from munjang.errors import InputError, TextError, shown
from munjang.library.checksums import content_hash
from munjang.library.store import Document, Metadata
from munjang.limits import LIMITS, Limits
from munjang.text.records import Record
from munjang.text.rows import BadLines
from munjang.text.unicode import clean
from munjang.wording import count

Incoming: TypeAlias = str | Mapping[str, Any] | Record

MAX_DEPTH = 20


def documents(records: Iterable[Incoming], *, limits: Limits = LIMITS, bad: BadLines | None = None) -> Iterator[Document]:
    """Yield a document for each record; an error says which record it is. With `bad` such records are counted there and passed over.

    >>> [each] = documents([{"id": 7, "text": "rain", "year": 2020}])
    >>> each.id, each.text, each.metadata
    ('7', 'rain', {'year': 2020})
    """
    for number, record in enumerate(records, start=1):
        where = record.where if isinstance(record, Record) else f"record {number:,}"
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
    if not isinstance(text, str):
        raise InputError(f'"text" is a {type(text).__name__}, expected a text')
    text = clean(text, limits=limits)
    if not text.strip():
        raise TextError("the text is empty, expected something to find\n  leave the record out")
    hashed = content_hash(text)
    return Document("" if id is None else checked_id(str(id), limits=limits), text, _metadata(metadata, limits), hashed)


def _parts(record: Incoming) -> tuple[object, object, Mapping[str, Any]]:
    if isinstance(record, str):
        return None, record, {}
    if isinstance(record, Record):
        return record.id, record.text, record.metadata
    if not isinstance(record, Mapping):
        raise InputError(f'found a {type(record).__name__}, expected a text or a mapping with "text"')
    if "text" not in record:
        raise InputError(f'found the keys {", ".join(shown(str(key)) for key in list(record)[:10])}, expected "text" among them')
    own = record.get("metadata")
    rest = {key: value for key, value in record.items() if key not in ("id", "text", "metadata")}
    if isinstance(own, Mapping):
        rest |= own
    elif own is not None:
        rest["metadata"] = own
    return record.get("id"), record["text"], rest


def checked_id(id: str, *, limits: Limits = LIMITS) -> str:
    """Return an id as it is, or refuse one that not every store can hold."""
    try:
        size = len(id.encode())
    except UnicodeEncodeError:
        raise InputError(f"the id {shown(id)} holds a lone surrogate, expected Unicode text") from None
    if not id or "\x00" in id or size > limits.max_id_bytes:
        raise InputError(f"the id {shown(id)} has {count(size, 'byte')}, expected 1 to {limits.max_id_bytes:,}, and no NUL among them")
    return id


def storable(id: str) -> bool:
    """Say whether a document could have this id at all."""
    return "\x00" not in id and not any("\ud800" <= ch <= "\udfff" for ch in id)


def _metadata(metadata: Mapping[str, Any], limits: Limits) -> Metadata:
    cleaned: Metadata = {_key(key): _cleaned(value, 1) for key, value in metadata.items()}
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


def _cleaned(value: object, depth: int) -> Any:
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
        raise InputError(f"the metadata hold {shown(repr(value))}, expected whole numbers of at most 64 bits\n  write it as a text")
    if isinstance(value, float) and abs(value) < float("inf"):
        return float(value)
    if isinstance(value, list | tuple):
        return [_cleaned(each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        return {_key(key): _cleaned(each, depth + 1) for key, each in value.items()}
    raise InputError(f"the metadata hold {shown(repr(value))} ({type(value).__name__}), expected what JSON can hold")
