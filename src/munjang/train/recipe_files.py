"""The tables of a recipe that name files and models → data sources and teachers.

In: a table as TOML gives it, the folder of the recipe, and where the table stands, for messages. Out: the dataclass, with every path joined
to that folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from munjang.errors import UsageError, shown
from munjang.train.adapt.registry import TEXT_OBJECTIVES
from munjang.train.distill.teacher import TeacherRecipe
from munjang.train.examples import DataSource
from munjang.train.objectives.settings import read_settings, refuse_unknown, refuse_unless


def read_source(values: Any, folder: Path, where: str) -> DataSource:
    """Return the data file that a table names."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{where} is {shown(str(values))}, expected a table that names a file as path")
    refuse_unknown(DataSource, values, where=where)
    if not isinstance(values.get("path"), str):
        raise UsageError(f"{where}: path is missing, expected a data file")
    source = read_settings(DataSource, values, where=where)
    refuse_unless(source.limit is None or source.limit >= 1, f"{where}: limit must be 1 or more")
    return replace(source, path=str(folder / source.path))


def as_plain(source: DataSource, objective: object) -> DataSource:
    """Read a file as plain text where its objective learns from nothing else."""
    is_plain = source.kind is None and (source.objective or objective) in TEXT_OBJECTIVES
    return replace(source, kind="plain") if is_plain else source


def read_teacher(values: Any, folder: Path, where: str) -> TeacherRecipe:
    """Return the teacher in a table, or in the bare name of its model."""
    table = {"model": values} if isinstance(values, str) else values
    if isinstance(table, Mapping):
        refuse_unknown(TeacherRecipe, table, where=where)
    if not isinstance(table, Mapping) or not isinstance(table.get("model"), str):
        raise UsageError(f"{where}: model is missing, expected the teacher's folder or name")
    made = read_settings(TeacherRecipe, table, where=where)
    cache = None if made.cache is None else str(folder / made.cache)
    return replace(made, model=folder_or_name(folder, made.model), cache=cache)


def folder_or_name(folder: Path, written: str) -> str:
    """Return the path of a folder beside the recipe, or else the name, which the registry may know."""
    beside = folder / written
    return str(beside) if beside.is_dir() else written
