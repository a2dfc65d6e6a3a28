"""The socket that the server listens on, or a word on why there is none."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

import pytest
from tests.serve.command import COMMAND

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from munjang.errors import UsageError
from munjang.serve.running import listen


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]"])
def test_port_0_takes_a_free_one_that_takes_connections(host):
    try:
        bound = listen(host, 0)
    except UsageError:
        if ":" in host and not _has_ipv6():
            pytest.skip("this machine has no IPv6 loopback")
        raise
    with bound, socket.create_connection((host.strip("[]"), bound.getsockname()[1]), timeout=5) as caller:
        assert caller.getpeername()[1] == bound.getsockname()[1] > 0
        assert not bound.getblocking()


def test_a_port_that_is_taken_is_named_with_what_to_do():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen on 127.0.0.1 port {port}: .*in use\n  choose another with --port"):
            listen("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(UsageError, match="cannot listen on 192.0.2.1 port 0: "):
        listen("192.0.2.1", 0)


def _has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as tried:
        try:
            tried.bind(("::1", 0))
        except OSError:
            return False
    return True


def test_people_are_told_the_address_and_where_the_documentation_is(tiny_bert_folder, tmp_path):
    call = ["serve", "--model", str(tiny_bert_folder), "--port", "0", "--access-log", "none", "--data", str(tmp_path)]
    with subprocess.Popen([sys.executable, "-c", COMMAND, *call], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
        finally:
            process.terminate()
    name = re.escape(tiny_bert_folder.name)
    assert re.fullmatch(rf"serving {name} on (http://127\.0\.0\.1:\d+) \(documentation: \1/docs\)\n", line)
