"""A bulk job on another device: how many workers share it, who is told, and what is refused before anything is written."""

from __future__ import annotations

import pytest

from munjang.bulk.run import encode_bulk
from munjang.bulk.worker_config import WorkerConfig
from munjang.errors import DeviceError
from munjang.limits import usable_cores

pytest.importorskip("pyarrow")


def test_one_worker_uses_a_gpu_and_one_a_core_the_processor():
    assert WorkerConfig(device="cuda").processes() == 1
    assert WorkerConfig(device="cpu").processes() == WorkerConfig().processes() == usable_cores()


def test_a_device_that_is_missing_stops_the_job_before_it_begins(tmp_path, news, tiny_bert_folder):
    with pytest.raises(DeviceError, match="pip install openvino"):
        encode_bulk([news], tmp_path / "out", model=tiny_bert_folder, workers=1, device="openvino")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow  # two processes import torch
def test_workers_are_told_the_engine(tmp_path, news, tiny_bert_folder):
    """Torch runs a BERT as the fast engine does; its vectors are not the same to the last bit, and the manifest does not mind."""
    report = encode_bulk([news], tmp_path / "out", model=tiny_bert_folder, workers=1, device="cpu", engine="torch")
    assert report.rows
    again = encode_bulk([news], tmp_path / "out", model=tiny_bert_folder, workers=1, resume=True)
    assert (again.rows, again.new_rows) == (report.rows, 0)
