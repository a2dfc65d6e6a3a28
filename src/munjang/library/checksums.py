"""Checksums of what a store holds, so that a flipped bit is noticed before it becomes an answer.

CRC-32 finds every single flipped bit and every burst up to 32 bits. A passage's checksum covers its numbers and its vector, so that two
swapped vectors are noticed too. The content hash is another thing: it says whether a text has changed, so it must not collide.
"""

from __future__ import annotations

import hashlib
import struct
import zlib

_NUMBERS = struct.Struct("<4q")


def passage_checksum(row: int, document: int, start: int, stop: int, vector: bytes) -> int:
    """Return the checksum of a passage's numbers and its vector as little-endian float32."""
    return zlib.crc32(vector, zlib.crc32(_NUMBERS.pack(row, document, start, stop)))


def document_checksum(id: str, text: str, metadata: str, content_hash: str) -> int:
    """Return the checksum of everything a document has; `metadata` as the JSON that is stored."""
    checksum = 0
    for part in (id, text, metadata, content_hash):
        raw = part.encode()
        checksum = zlib.crc32(raw, zlib.crc32(len(raw).to_bytes(8, "little"), checksum))
    return checksum


def content_hash(text: str) -> str:
    """Return 32 hexadecimal digits that only this text has.

    >>> content_hash("비가 온다")
    '260c32c989249737b1fae8fdfdd55c61'
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
