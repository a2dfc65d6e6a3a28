"""Training: recipes in, model folders out. The only home of torch; nothing here imports it before `train` or a name that needs it is used.

`train(recipe)` is the whole way; `load(path)` loads a model that can learn, for those who write their own loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.errors import MissingExtra

if TYPE_CHECKING:
    from munjang.train.encoder import TrainableEncoder
    from munjang.train.load_folder import EncoderOptions
    from munjang.train.progress import Progress
    from munjang.train.recipe import Recipe
    from munjang.train.save_and_report import TrainResult
    from munjang.wording import Language

_EXTRA = frozenset({"torch", "transformers", "accelerate"})


@contextmanager
def name_missing_extra() -> Iterator[None]:
    """Raise MissingExtra where an import fails for lack of torch and its like; also a decorator of functions that import them."""
    try:
        yield
    except ImportError as error:
        raise explain_import_error(error) from error


@name_missing_extra()
def train(recipe: Recipe | Path | str, *, resume: bool = False, progress: Progress | None = None, language: Language = "en") -> TrainResult:
    """Train what a recipe describes and save the model with its card and report; `resume` continues after an interruption.

    `language` is the report's.
    """
    from munjang.train.save_and_report import run

    return run(recipe, resume=resume, progress=progress, language=language)


@name_missing_extra()
def load(path: Path | str, options: EncoderOptions | None = None) -> TrainableEncoder:
    """Return the encoder of a model folder, ready for further training."""
    from munjang.train.load_folder import load_encoder

    return load_encoder(path, options)


def explain_import_error(error: ImportError) -> Exception:
    """Return what to raise for a failed import: MissingExtra where the extra is not installed, else the error itself."""
    return MissingExtra("training", "train") if (error.name or "").partition(".")[0] in _EXTRA else error
