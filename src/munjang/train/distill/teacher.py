"""Who teaches: a recipe's `teacher` → an encoder that knows its prompt. The teacher runs in the engine, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from munjang.models.over_encoder import OverEncoder
from munjang.types import Vectors

if TYPE_CHECKING:
    from munjang.models.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class TeacherRecipe:
    """The teacher's folder or name; `prompt` (a name among its prompts, or the text itself) goes before every text that it encodes.

    `cache` is a folder for its vectors that several trainings may share; without it they are kept in the output's own folder.
    """

    model: str
    prompt: str | None = None
    compute: Literal["float32", "int8"] = "float32"
    cache: str | None = None


class PromptedEncoder(OverEncoder["SentenceEncoder"]):
    """An Encoder over a loaded model, a prompt before every text; long texts are cut without a warning."""

    def __init__(self, model: SentenceEncoder, prompt: str | None = None) -> None:
        super().__init__(model)
        self._prompt = None if prompt is None else model.prompts.get(prompt, prompt)

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        prompt = "" if self._prompt is None else hashlib.sha256(self._prompt.encode()).hexdigest()[:16]
        return f"{self.model.fingerprint}-{prompt}" if prompt else self.model.fingerprint

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one row per text."""
        vectors: Vectors = self.model.encode_with_report(texts, prompt=self._prompt).vectors
        return vectors


def load_teacher(recipe: TeacherRecipe) -> PromptedEncoder:
    """Load the teacher that a recipe names."""
    from munjang.models.sentence_encoder import SentenceEncoder

    return PromptedEncoder(SentenceEncoder.load(recipe.model, compute=recipe.compute), recipe.prompt)
