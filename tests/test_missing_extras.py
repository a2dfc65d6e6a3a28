"""Without an optional part, whoever needs it is told the one line that installs it; no other error, and nothing half done."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from munjang.errors import MissingExtra

ROWS = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)


def topics(**settings: str) -> None:
    from tests.analyze.topics.settings import topic_settings

    from munjang.analyze.topics.groups import find_groups

    find_groups(ROWS, topic_settings(**settings))


def dask() -> None:
    from munjang.bulk.run import connect_dask

    with connect_dask("local", workers=1, threads=1):
        raise AssertionError("a cluster was made without dask")


def cluster(kind: str) -> None:
    from munjang.bulk.run import encode_bulk

    encode_bulk(["no such file"], "no such folder", **{kind: "local"})


def object_store() -> None:
    from munjang.bulk.storage import open_filesystem

    open_filesystem("s3://bucket/news")


def parquet_input() -> None:
    from munjang.bulk.input_streams import open_parquet

    open_parquet(io.BytesIO())


def parquet_output() -> None:
    from munjang.cli.encode import ParquetWriter

    ParquetWriter(io.BytesIO(), False)


def hub() -> None:
    from munjang.cli.models import _hub

    _hub()


CALLS: dict[str, tuple[str, str, Callable[[], None]]] = {
    "topics by HDBSCAN": ("sklearn.cluster", "topics", lambda: topics(method="hdbscan")),
    "reduction by UMAP": ("umap", "umap", lambda: topics(reduction="umap")),
    "--dask": ("distributed", "dask", dask),
    "--ray": ("ray", "ray", lambda: cluster("ray")),
    "--spark": ("pyspark", "spark", lambda: cluster("spark")),
    "s3://": ("fsspec", "dask", object_store),
    "reading Parquet": ("pyarrow.parquet", "parquet", parquet_input),
    "writing Parquet": ("pyarrow", "parquet", parquet_output),
    "fetching models": ("huggingface_hub", "train", hub),
}


@pytest.mark.parametrize("what", CALLS)
def test_the_missing_part_and_the_line_that_installs_it_are_named(what, monkeypatch):
    module, extra, call = CALLS[what]
    monkeypatch.setitem(sys.modules, module, None)
    for kind in ("dask", "ray", "spark"):
        monkeypatch.delitem(sys.modules, f"munjang.bulk.{kind}_run", raising=False)  # another test may have imported it
    with pytest.raises(MissingExtra, match=rf"^{re.escape(what)} needs the extra '{extra}'") as caught:
        call()
    assert str(caught.value).endswith(f"pip install 'munjang[{extra}]'")
    assert (caught.value.exit_code, caught.value.http_status, caught.value.extra) == (2, 501, extra)


def test_every_command_shows_its_options_without_any_extra() -> None:
    code = (
        "import importlib, pkgutil, sys, munjang.cli\n"
        "hidden = 'sklearn torch transformers accelerate distributed dask pyarrow starlette pydantic orjson faiss kiwipiepy psycopg "
        "ray pyspark'\n"
        "sys.modules.update(dict.fromkeys(hidden.split()))\n"
        "for found in pkgutil.iter_modules(munjang.cli.__path__):\n"
        "    importlib.import_module(f'munjang.cli.{found.name}')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
