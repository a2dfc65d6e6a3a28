"""A service → a process that listens, until it is told to stop.

SIGTERM and SIGINT stop it gently: no new connections, accepted requests finish, exit code 0. A second signal does not wait for them.
Whatever is at work, `stop_seconds` after the signal the process ends: with exit code 1 and the places in the code where its threads stand.
What was acknowledged is on disk by then.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

import uvicorn

from munjang.errors import MunjangError, UsageError
from munjang.limits import ServeLimits
from munjang.serve.access_log import AccessLog
from munjang.serve.app import make_app
from munjang.serve.keys import KeyRing
from munjang.serve.protocol import BoundedProtocol
from munjang.serve.service import Service

BACKLOG = 2_048
OTHER_FILES = 256
"""Files that are open beside connections: libraries, models, uploads."""
TRIM_TICKS = 50
"""Tenths of a second between two looks at the process's memory."""
GROWTH_BYTES = 32 * 2**20
"""By which it grows before freed memory is given back."""
MAX_ARENAS = 2
"""Of glibc's allocator: each keeps what its threads freed for themselves."""
FORCED_SECONDS = 1.0
"""For a process that is ended by force to be gone."""
GRACEFUL_PART = 0.75
"""Of the time to stop, for accepted requests; the rest is for threads and libraries."""
SWITCH_SECONDS = 0.0005
"""A compute thread that is done waits no longer than this for the thread that reads and writes; Python's own 5 ms is an age here."""


class UnusedMemory:
    """What the C library keeps of freed memory, for the next one who asks: after a large request that can be a gigabyte."""

    def __init__(self) -> None:
        self._lowest = 0
        self._at_work: threading.Thread | None = None
        try:
            self._trim: Callable[[int], int] | None = ctypes.CDLL(None).malloc_trim  # glibc has it
        except (AttributeError, OSError, TypeError):
            self._trim = None

    def give_back(self) -> None:
        """Give it back, in a thread, when the process has grown since the last time; the call itself takes no time."""
        if self._trim is None or (self._at_work is not None and self._at_work.is_alive()):
            return
        size = resident_bytes()
        self._lowest = min(self._lowest or size, size)
        if size > self._lowest + GROWTH_BYTES:
            self._at_work = threading.Thread(target=self._give_back, name="munjang-memory", daemon=True)
            self._at_work.start()

    def _give_back(self) -> None:
        assert self._trim is not None
        self._trim(0)
        self._lowest = resident_bytes()


def resident_bytes() -> int:
    """Return how much memory this process has now; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


class SignalServer(uvicorn.Server):
    """uvicorn's server, which otherwise ends with the signal that stopped it and not with 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop on a signal and do not raise it again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class GentleServer(SignalServer):
    """The server of a service, which does not wait for ever when it is stopped."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._memory = UnusedMemory()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Set the clock that ends the process, which needs no Python to run; then stop."""
        if not self.should_exit:
            faulthandler.dump_traceback_later(self._service.settings.limits.stop_seconds - FORCED_SECONDS, exit=True)
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Give memory back to the system after large requests, too."""
        if counter % TRIM_TICKS == 0:
            self._memory.give_back()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop jobs at once: nobody waits for them with a request."""
        self._service.jobs.stop()
        await super().shutdown(sockets)


def make_server(service: Service, *, log: BinaryIO | None = None) -> GentleServer:
    """Return a server for the service that is not yet started."""
    limits = service.settings.limits
    protocol = type("Protocol", (BoundedProtocol,), {"limits": limits})
    config = uvicorn.Config(
        make_app(service, AccessLog(log)),
        host=service.settings.host,
        port=service.settings.port,
        http=protocol,
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=int(limits.stop_seconds * GRACEFUL_PART),
    )
    return GentleServer(config, service)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there is none; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host.strip("[]"), port))
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror or error}\n  choose another with --port") from None
    bound.listen(BACKLOG)
    bound.setblocking(False)
    return bound


def run(service: Service, *, log: BinaryIO | None = None, ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve until a signal; `ready` is told the address when connections are taken."""
    settings = service.settings
    bound = listen(settings.host, settings.port)
    shown = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
    ready(f"http://{shown}:{bound.getsockname()[1]}")
    _prepare_process(settings.limits)
    service.jobs.start("warm", "", lambda _job: _warm(service))
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # what is loaded by now stays; the collector need not walk it again and again
    reload_keys_on_hangup(service.keys, settings.keys_file)
    server = make_server(service, log=log)
    server.run(sockets=[bound])
    if not server.force_exit:  # else threads may be at work still
        faulthandler.cancel_dump_traceback_later()


def _prepare_process(limits: ServeLimits) -> None:
    """Let the process have as many connections as the limits promise, and few arenas; each where the system knows how."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = limits.max_connections + limits.spare_connections + OTHER_FILES
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(-8, MAX_ARENAS)  # M_ARENA_MAX


def reload_keys_on_hangup(keys: KeyRing, file: Path | None) -> None:
    """Read the key file again at SIGHUP, where there is one."""

    def reload(*_: object) -> None:
        try:
            keys.reload()
        except MunjangError as error:
            print(f"munjang: the keys stay as they were: {error}", file=sys.stderr, flush=True)

    if file is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, reload)


def _warm(service: Service) -> dict[str, Any]:
    service.libraries.warm()
    return {}
