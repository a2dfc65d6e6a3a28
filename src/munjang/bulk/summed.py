"""A JSON object that carries a checksum of everything else in it, so that no damage to a job's papers is taken for what was written."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from munjang.errors import DamagedFile

CHECKSUM = "checksum"


def to_summed(value: dict[str, Any], *, indent: int | None = None) -> bytes:
    """Return an object as JSON, with its checksum."""
    return json.dumps({**value, CHECKSUM: _checksum(value)}, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")


def from_summed(content: bytes, *, where: str, advice: str) -> Any:
    """Read JSON back, without the checksum; what an older version wrote has none. Refuse what is not what was written."""
    value = from_json(content, where=where, advice=advice)
    if isinstance(value, dict) and CHECKSUM in value and not _is_right(value.pop(CHECKSUM), value):
        raise DamagedFile(f"{where}: is not what was written (its checksum differs)\n  {advice}")
    return value


def from_json(content: bytes, *, where: str, advice: str) -> Any:
    """Read JSON back."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{where}: is not JSON ({error})\n  {advice}") from None


def _is_right(checksum: Any, value: dict[str, Any]) -> bool:
    try:
        return bool(checksum == _checksum(value))
    except RecursionError:  # nested just deep enough to be read
        return False


def _checksum(value: dict[str, Any]) -> str:
    """Return the SHA-256 of a value, however its JSON is set out; text that cannot be UTF-8 counts as it is escaped."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
