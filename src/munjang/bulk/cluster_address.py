"""Addresses of clusters: one that strangers could read, or run code through, is refused."""

from __future__ import annotations

import os
import re

from munjang.errors import UsageError, quote

LOCAL = "local"
"""A cluster on this machine, in the place of an address."""

_LOOPBACK = re.compile(r"([a-z]+://)?(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?/?$")


def is_loopback(address: str) -> bool:
    """Say whether an address is one of this machine that no other reaches.

    >>> is_loopback("spark://localhost:7077"), is_loopback("10.0.0.1:6379")
    (True, False)
    """
    return _LOOPBACK.match(address) is not None


def check_address(address: str) -> None:
    """Refuse a Dask scheduler on a network without TLS.

    >>> check_address("tls://scheduler.example:8786"), check_address("tcp://127.0.0.1:8786")
    (None, None)
    """
    if address.startswith("tls://") or (is_loopback(address) and address.partition("://")[0] in ("tcp", address)):
        return
    raise UsageError(
        f"{quote(address)}: is neither on this machine nor encrypted, expected tls://host:port, tcp://127.0.0.1:port or {LOCAL!r}\n"
        "  start dask scheduler and dask worker with --tls-ca-file, --tls-cert and --tls-key (docs/bulk.md)"
    )


def check_ray_address(address: str) -> None:
    """Refuse a Ray cluster on a network unless Ray's own TLS is switched on."""
    if address == LOCAL or is_loopback(address) or os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return
    raise UsageError(
        f"{quote(address)}: is neither on this machine nor encrypted, expected 127.0.0.1:port, {LOCAL!r}, or RAY_USE_TLS=1\n"
        "  start every ray node with RAY_USE_TLS=1 and the three files that it names (docs/bulk.md)"
    )
