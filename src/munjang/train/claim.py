"""The output folder of a training: taken for a new run, found again to go on, given back where nothing came of it.

In: a recipe. On disk: the recipe as JSON in the folder of the training's own files, so that a resumed run can tell whether it is the same.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from munjang.errors import DamagedFile, UsageError
from munjang.train.durable import clear_partial, is_partial, write_text
from munjang.train.processes import Processes
from munjang.train.recipe import Recipe, differences
from munjang.whole_file import make_folder

_RECIPE = "recipe.json"


def claim_output(recipe: Recipe, folder: Path, *, processes: Processes, resume: bool) -> bool:
    """Take the recipe's output for this run and say whether it is new; False where an earlier run of the same recipe is resumed.

    `folder`, inside the output, holds the training's own files.
    """
    output, path = Path(recipe.output), folder / _RECIPE
    wanted = json.dumps(recipe.to_json(), indent=1, ensure_ascii=False)
    if resume and path.is_file():
        _refuse_other_recipe(path, json.loads(wanted), output=recipe.output)
        return False
    if output.exists() and not _is_free(output, folder):
        hint = "use --resume to go on with it, or name another output" if path.is_file() else "name another output"
        raise UsageError(f"{recipe.output}: is there already and not empty\n  {hint}")
    processes.wait()
    if processes.is_first:
        make_folder(folder)
        clear_partial(folder)
        write_text(path, wanted)
    processes.wait()
    return True


def release_output(output: Path, folder: Path) -> None:
    """Give a newly claimed output back as it was found; what says whose it is goes last, so that a kill on the way does not orphan it."""
    for path in [path for path in folder.glob("*") if path.name != _RECIPE]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    if output.is_dir() and not any(output.iterdir()):
        output.rmdir()


def _is_free(output: Path, folder: Path) -> bool:
    """Return whether an output holds nothing, or only what a process left that was killed while it claimed it."""
    inside = list(output.iterdir())
    return not inside or (inside == [folder] and folder.is_dir() and all(is_partial(path) for path in folder.iterdir()))


def _refuse_other_recipe(path: Path, wanted: dict[str, object], *, output: str) -> None:
    try:
        found = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise DamagedFile(f"{path}: is not a JSON object") from None
    # a training that was moved is where it is found, whatever its recipe said
    changed = differences({**found, "output": wanted["output"]}, wanted)
    if changed:
        lines = "\n".join(f"  {line}" for line in changed)
        raise UsageError(f"{output}: was started with another recipe, so it cannot go on with this one\n{lines}")
