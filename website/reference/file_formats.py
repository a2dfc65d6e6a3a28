"""What Munjang reads and writes: from the tables of suffixes and layouts, the library's schema, and the docstrings of the writers."""

from __future__ import annotations

from importlib import import_module

from munjang.data.layouts import LAYOUTS, DatasetLayout
from munjang.library import sqlite_schema
from munjang.text import readers
from website.reference.markdown import code, documented, fenced, table

WRITERS = (
    (
        "Model folders",
        (
            "munjang.engine.folder",
            "munjang.engine.write_folder",
            "munjang.engine.cross",
            "munjang.engine.pair_head",
            "munjang.models.export",
        ),
    ),
    ("Files of vectors", ("munjang.cli.encode",)),
    ("The folder of a bulk job", ("munjang.bulk.output", "munjang.bulk.shard_files")),
    ("Saved topics", ("munjang.analyze.topics.saving",)),
    ("Saved classifiers", ("munjang.analyze.classify.saving",)),
    ("Calibrations", ("munjang.evaluate.calibrate",)),
    ("Checkpoints of a training", ("munjang.train.checkpoint", "munjang.train.log")),
)
"""Heading → the modules whose first lines say what is in the files."""


def page() -> str:
    """Return the page of file formats."""
    suffixes = [(code(suffix), code(format)) for suffix, format in readers._SUFFIXES.items()]
    parts = [
        "# File formats\n",
        "Everything that is loaded is data: JSON, TOML, safetensors, SQLite, Parquet, npy. No pickle, no archive, no code.\n",
        "## Input files\n",
        "By suffix, each also with `.gz` (Parquet aside); `--format` says it for other names and for standard input.\n",
        table(("suffix", "format"), suffixes),
        "## Layouts of labelled data\n",
        "Recognised from the header or the first row; `--layout` names one. Roles are what `--column ROLE=NAME` takes.\n",
        table(("layout", "kind", "columns (role: name or number)", "scores"), [_layout(each) for each in LAYOUTS]),
        "## Libraries\n",
        f"One SQLite file, application id `0x{sqlite_schema.APPLICATION:08X}`, format {sqlite_schema.FORMAT}.\n",
        documented(sqlite_schema),
        fenced(";\n".join(sqlite_schema.TABLES) + ";", "sql"),
    ]
    for heading, modules in WRITERS:
        parts.append(f"## {heading}\n")
        for module in modules:
            parts += [f"*{module}*:\n", documented(import_module(module))]
    return "\n".join(parts)


def _layout(layout: DatasetLayout) -> tuple[str, str, str, str]:
    columns = ", ".join(f"{role}: {code(str(name))}" for role, name in layout.columns.items())
    scale = f"{layout.scale[0]:g} … {layout.scale[1]:g}" if layout.scale else ""
    return code(layout.name), layout.kind, columns, scale
