"""Metadata → the text that every store keeps, and that checksums are taken of."""

from __future__ import annotations

import json

from munjang.library.store import Metadata


def metadata_json(metadata: Metadata) -> str:
    """Return metadata as they are stored: equal metadata give equal texts.

    >>> metadata_json({"year": 2020, "태그": None})
    '{"year":2020,"태그":null}'
    """
    return json.dumps(metadata, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
