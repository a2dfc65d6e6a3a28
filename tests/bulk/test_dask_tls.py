"""A cluster that speaks TLS only: Munjang finds keys and certificates in Dask's own configuration."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.bulk.conftest import digest

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")


@pytest.fixture
def certificate(tmp_path):
    """A certificate that is its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    key, certificate = tmp_path / "node.key", tmp_path / "node.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=munjang-test"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return str(key), str(certificate)


def test_a_job_runs_over_tls(tmp_path, news, encode, certificate):
    import dask

    key, pem = certificate
    pairs = {f"distributed.comm.tls.{role}": {"key": key, "cert": pem} for role in ("scheduler", "worker", "client")}
    with (
        dask.config.set({"distributed.comm.tls.ca-file": pem, **pairs}),
        distributed.LocalCluster(
            n_workers=1,
            processes=False,
            protocol="tls://",
            security=distributed.Security(),
            host="tls://127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
    ):
        assert cluster.scheduler_address.startswith("tls://127.0.0.1:")
        there = encode(news, tmp_path / "there", dask=cluster.scheduler_address)
    assert digest(there) == digest(encode(news, tmp_path / "here"))
