"""A service → a process that listens, until it is told to stop.

SIGTERM and SIGINT stop it gently: no new connections, accepted requests finish, exit code 0. A second signal ends it at once.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any, BinaryIO

import uvicorn

from munjang.errors import UsageError
from munjang.serve.access_log import AccessLog
from munjang.serve.app import make_app
from munjang.serve.protocol import BoundedProtocol
from munjang.serve.service import Service

BACKLOG = 2_048
SWITCH_SECONDS = 0.0005
"""A compute thread that is done waits no longer than this for the thread that reads and writes; Python's own 5 ms is an age here."""


class GentleServer(uvicorn.Server):
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
        timeout_graceful_shutdown=limits.stop_seconds,
    )
    return GentleServer(config)


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
    service.jobs.start("warm", "", lambda _job: _warm(service))
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # what is loaded by now stays; the collector need not walk it again and again
    make_server(service, log=log).run(sockets=[bound])


def _warm(service: Service) -> dict[str, Any]:
    service.libraries.warm()
    return {}
