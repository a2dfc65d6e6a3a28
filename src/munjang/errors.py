"""Every error Munjang raises on purpose, and what each one means to a shell and to an HTTP client.

    MunjangError
    ├── UsageError            the call itself is wrong: an option, an argument, an unknown name      exit 2   HTTP 400
    │   ├── MissingExtra      an optional part is not installed; names the extra                     exit 2   HTTP 501
    │   └── DeviceError       a device is missing or does not start; names what to install           exit 2   HTTP 501
    ├── InputError            the data handed in is wrong: a broken line, a label out of range       exit 3   HTTP 422
    │   ├── TextError         one text cannot be encoded: NUL, too large, too long under "error"     exit 3   HTTP 422
    │   └── FolderError       a model folder is not what it should be: missing, foreign, unsafe      exit 3   HTTP 422
    ├── DamagedFile           a file of ours fails its own checks                                    exit 4   HTTP 500
    ├── Busy                  someone else holds what is needed; try again                           exit 5   HTTP 429
    └── NoSpace               the disk is full; the old state is intact                              exit 6   HTTP 507

A message says where, what was found, what was expected and what to do. It never echoes a secret, never advises switching a safety off, and
shows user text only through `quote`.
"""

from __future__ import annotations

from typing import Self


class MunjangError(Exception):
    """The base class of all errors that a caller can act on."""

    exit_code = 1
    http_status = 500

    for_shell: str | None = None
    """The message for someone who cannot call Python, where it must differ."""

    for_client: str | None = None
    """The message for a client of a server, where the full one tells what strangers must not know: a path, an address, a process."""

    def at_shell(self, message: str) -> Self:
        """Say it differently to someone at a shell; returns the error, to be raised."""
        self.for_shell = message
        return self


class UsageError(MunjangError):
    """The call itself is wrong."""

    exit_code = 2
    http_status = 400


class MissingExtra(UsageError):
    """An optional part of Munjang is not installed."""

    http_status = 501

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}, which is not installed\n  pip install 'munjang[{extra}]'")
        self.extra = extra


class DeviceError(UsageError):
    """A device that was asked for is not there, or does not start."""

    http_status = 501


class InputError(MunjangError):
    """The data handed in is wrong."""

    exit_code = 3
    http_status = 422


class TextError(InputError):
    """One text cannot be encoded."""


class FolderError(InputError):
    """A model folder is not what it should be."""


class DamagedFile(MunjangError):
    """A file written by Munjang fails its own checks."""

    exit_code = 4


class Busy(MunjangError):
    """Someone else holds what is needed."""

    exit_code = 5
    http_status = 429


class NoSpace(MunjangError):
    """The disk is full; the old state is intact."""

    exit_code = 6
    http_status = 507


def quote(text: str, limit: int = 60) -> str:
    """Quote user text for a message: escaped, one line, cut at `limit` characters.

    >>> quote("a\\nb")
    "'a\\\\nb'"
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return ascii(cut) if any(not ch.isprintable() for ch in cut) else repr(cut)
