"""Nothing in src can run what data says: every import and call that could is banned, or stands below with its reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.trust.banned import banned

SOURCE = Path(__file__).parents[2] / "src" / "munjang"

XML = "expat loads nothing from outside and bounds what entities become; read in a process with limits"
ZIP = "members are read, never unpacked to a path; read in a process with limits of memory and time"

ALLOWED = {
    ("__init__.py", "importlib.import_module()"): "the homes of the public names, a table in the same file",
    ("cli/commands.py", "importlib.import_module()"): "the commands, a table of our own modules in the same file",
    ("types.py", "getattr(numpy, a computed name)"): "names of numbers, a table in the same file",
    ("models/open_engine.py", "importlib.import_module()"): "the torch engine, one name of our own in the same file",
    ("text/pos_analysers.py", "importlib.import_module()"): "three analysers by name, a table in the same file",
    ("bulk/local_run.py", "import subprocess"): "starts our own worker with a fixed command, without a shell",
    ("documents/parse_pdf.py", "import ctypes"): "numbers and buffers that pdfium's functions take",
    ("documents/parse_html.py", "import xml.etree"): XML,
    ("documents/parse_html.py", "import xml.etree.ElementTree"): XML,
    ("documents/parse_html.py", "import zipfile"): ZIP,
    ("documents/parse_xml.py", "import xml.etree"): XML,
    ("documents/parse_xml.py", "import xml.etree.ElementTree"): XML,
    ("documents/parse_xml.py", "import xml.parsers"): XML,
    ("documents/parse_xml.py", "import xml.parsers.expat"): XML,
    ("documents/parse_xml.py", "import zipfile"): ZIP,
    ("documents/pdf_tables.py", "import ctypes"): "numbers and buffers that pdfium's functions take",
    ("engine/session.py", "import ctypes"): "one function of the C library that gives memory back, by a literal name",
    ("serve/running.py", "import socket"): "the server listens",
    ("serve/running.py", "import ctypes"): "two functions of the C library that give memory back, by literal names",
    ("text/child_process.py", "import ctypes"): "one function of the C library that ends a reader with its parent",
    ("text/child_process.py", "import subprocess"): "starts our own readers of files with a fixed command, without a shell",
    (
        "train/load_folder.py",
        "getattr(transformers, a computed name)",
    ): "one of two literals; safetensors only, no remote code",
}
"""(file, what) → why it is safe."""


@cache
def found() -> dict[tuple[str, str], list[int]]:
    places: dict[tuple[str, str], list[int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for line, what in banned(path.read_text(encoding="utf-8")):
            places.setdefault((path.relative_to(SOURCE).as_posix(), what), []).append(line)
    return places


def test_everything_that_could_run_code_is_absent_or_has_a_reason(figures):
    files = len(list(SOURCE.rglob("*.py")))
    unknown = {place: lines for place, lines in found().items() if place not in ALLOWED}
    figures("no import or call in src can run what data says", cases=files, bad=len(unknown), notes="files of src, read as syntax trees")
    assert not unknown


def test_every_exception_is_still_needed():
    assert set(ALLOWED) <= set(found())


SAMPLES = {
    "import pickle": "import pickle",
    "from pickle import loads": "import pickle",
    "import joblib as j": "import joblib",
    "import urllib.request": "import urllib.request",
    "from urllib import request": "import urllib.request",
    "import xml.etree.ElementTree as tree": "import xml.etree.ElementTree",
    "eval(text)": "eval()",
    "exec(text)": "exec()",
    "compile(text, 'a', 'exec')": "compile()",
    "__import__(name)": "__import__()",
    "import importlib\nimportlib.import_module(name)": "importlib.import_module()",
    "from importlib import import_module as load\nload(name)": "importlib.import_module()",
    "import os\nos.system(text)": "os.system()",
    "from os import system\nsystem(text)": "os.system()",
    "import os\nos.execvp(a, b)": "os.execvp()",
    "import torch\ntorch.load(path)": "torch.load()",
    "from torch import load\nload(path)": "torch.load()",
    "run(text, shell=True)": "shell is not False",
    "import subprocess\nsubprocess.run(text, shell=wanted)": "shell is not False",
    "load(path, trust_remote_code=flag)": "trust_remote_code is not False",
    "import numpy as np\nnp.load(path)": "numpy.load() without allow_pickle=False",
    "import numpy as np\nnp.load(path, allow_pickle=True)": "allow_pickle is not False",
    "import shutil\nshutil.unpack_archive(path)": "shutil.unpack_archive()",
    "from transformers import AutoModel\nAutoModel.from_pretrained(path)": "from_pretrained() without local_files_only",
    "import torch\ngetattr(torch, name)": "getattr(torch, a computed name)",
    "connection.enable_load_extension(True)": "?.enable_load_extension()",
}


@pytest.mark.parametrize("source", SAMPLES, ids=SAMPLES.values())
def test_the_search_finds_what_it_is_for(source):
    what = SAMPLES[source]
    assert what.replace("?.", "connection.") in [each for _, each in banned(source)]


@pytest.mark.parametrize(
    "source",
    ["import re\nre.compile('a')", "model.eval()", "import numpy as np\nnp.load(p, allow_pickle=False)", "import json\njson.load(f)"],
)
def test_the_search_lets_harmless_code_pass(source):
    assert list(banned(source)) == []
