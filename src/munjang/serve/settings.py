"""What a server is told when it starts: where it listens, who may come in, and its limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from munjang.errors import UsageError
from munjang.limits import SERVE_LIMITS, ServeLimits
from munjang.options import Option, check_options
from munjang.text.dictionary import Dictionary
from munjang.text.korean import Analyser


@dataclass(frozen=True)
class ServerSettings:
    """How the server behaves. The key is never shown."""

    host: Annotated[str, Option("The address to listen on; other machines need a key.")] = "127.0.0.1"
    port: Annotated[int, Option("The port; 0 takes a free one.", min=0, max=65_535)] = 8080
    key: str | None = field(default=None, repr=False)
    """A key that may do everything."""
    keys_file: Path | None = None
    """Keys with rights; see `keys`."""
    hosts: tuple[str, ...] = ()
    """Names, besides localhost and addresses, that a Host header may hold."""
    origins: tuple[str, ...] = ()
    """Web pages of other origins that may call, such as https://example.org."""
    data: Path | None = None
    """Where libraries that clients make are kept; None: they cannot."""
    read_only: Annotated[bool, Option("Reject every change to a library.")] = False
    analyser: Analyser | None = None
    """What splits the words of new libraries; None: the best that is installed."""
    dictionary: Dictionary = field(default=Dictionary(), repr=False)
    """The user's words for texts that are sent, and for new libraries."""
    limits: ServeLimits = SERVE_LIMITS


def check_settings(settings: ServerSettings) -> ServerSettings:
    """Return the settings, or refuse those that would leave the server open to everyone."""
    check_options(ServerSettings, vars(settings))
    if settings.key is None and settings.keys_file is None and not is_loopback(settings.host):
        raise UsageError(
            f"--host {settings.host} lets other machines in, and no key is set\n"
            "  give one with --api-key-file FILE or --keys FILE, or listen on 127.0.0.1"
        )
    for origin in settings.origins:
        if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
            raise UsageError(f"origin {origin!r}: expected a scheme and a host, such as https://example.org")
    return settings


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach the address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
