"""A model that puts a prompt before every text: `model.for_queries()`, `model.for_documents()`, `model.with_prompt(text)`.

Models such as E5 read questions and documents with different prompts, which their folders name. A `PromptedEncoder` is an `Encoder` like
the model inside and shares its weights. Its fingerprint names the prompt, so vectors made with different prompts are never mixed up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from munjang.engine.folder import ModelFolder
from munjang.errors import UsageError
from munjang.models.batch_encoder import Kept, TokenVectors
from munjang.models.long_text import warn_of_cut
from munjang.options import DimensionsOption, LongTextOption, NormalizeOption, PrecisionOption
from munjang.types import DEFAULT_LONG_TEXT, DEFAULT_PRECISION, Compute, Floats, SkippedTokens, Vectors
from munjang.wording import brief_repr

if TYPE_CHECKING:
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.types import Pooling

Role: TypeAlias = Literal["query", "document"]

ROLE_PROMPTS: dict[Role, tuple[str, ...]] = {
    "query": ("query", "retrieval.query"),
    "document": ("document", "passage", "corpus", "doc", "retrieval.passage"),
}
"""Names under which folders keep the prompt, the route or the task adapter for a role; the first one found is used."""


@brief_repr
@dataclass(frozen=True, kw_only=True)
class PromptedEncoder:
    """A view of a loaded model; made by the model's own methods."""

    model: SentenceEncoder
    prompt: str | None
    """What goes before every text; None for the model's default prompt, if it has one."""
    label: str = ""
    """How the fingerprint tells vectors with this prompt from others."""
    role: Role | None = None
    progress: bool = False
    """Whether encoding shows a progress bar."""
    warn: bool = True
    """Whether a text that is cut is a TruncationWarning."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        return self.model.dimension

    @property
    def max_length(self) -> int | None:
        """How many tokens the model reads of a text, its prompt included; None where nothing limits them."""
        return self.model.max_length

    @property
    def compute(self) -> Compute:
        """How the model computes."""
        return self.model.compute

    @property
    def pooling(self) -> Pooling | None:
        """How token vectors become one."""
        return self.model.pooling

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        return self.fingerprint_as(self.compute)

    def fingerprint_as(self, compute: Compute) -> str:
        """Return the fingerprint that this encoder has when the model computes so."""
        own = self.model.fingerprint if compute == self.compute else self.model.fingerprint_as(compute)
        return f"{own} {self.label}" if self.label else own

    def for_queries(self) -> PromptedEncoder:
        """Return the same model for queries; an encoder with a prompt of its own stays as it is."""
        return self._for_role("query")

    def for_documents(self) -> PromptedEncoder:
        """Return the same model for documents; an encoder with a prompt of its own stays as it is."""
        return self._for_role("document")

    def count_tokens(self, texts: Iterable[str], /) -> list[int]:
        """Return how many tokens each text has, its prompt and special tokens included."""
        return self.model.count_tokens(texts, prompt=self.prompt)

    def encode(
        self,
        texts: str | Iterable[str],
        /,
        *,
        long_text: LongTextOption = DEFAULT_LONG_TEXT,
        precision: PrecisionOption = DEFAULT_PRECISION,
        dimensions: DimensionsOption = None,
        normalize: NormalizeOption = False,
    ) -> Floats:
        """Return the vector of a text, shape (d,), or of many texts, shape (n, d), in the caller's order."""
        report = self.model.encode_with_report(
            [texts] if isinstance(texts, str) else texts,
            prompt=self.prompt,
            long_text=long_text,
            precision=precision,
            dimensions=dimensions,
            normalize=normalize,
            progress=self.progress,
        )
        if self.warn and report.too_long and long_text == "truncate":
            warn_of_cut(len(report.too_long), len(report.tokens), self.max_length, in_python="long_text='window' reads all", stacklevel=3)
        vectors: Floats = report.vectors[0] if isinstance(texts, str) else report.vectors
        return vectors

    def encode_tokens(
        self, texts: Iterable[str], /, *, skip: Collection[SkippedTokens] = (), normalize: bool = False
    ) -> list[TokenVectors]:
        """Return every token's hidden state, the prompt's tokens included unless `skip` leaves them out."""
        return self.model.encode_tokens(texts, prompt=self._prompt_text, skip=skip, normalize=normalize, progress=self.progress)

    def encode_with_tokens(
        self, texts: Iterable[str], /, *, keep: Callable[[Vectors], Kept], skip: Collection[SkippedTokens] = ()
    ) -> tuple[Vectors, list[Kept]]:
        """Return what `encode` returns, and what `keep` makes of each text's token rows, from the same pass."""
        return self.model.encode_with_tokens(texts, keep=keep, prompt=self._prompt_text, skip=skip, progress=self.progress, warn=self.warn)

    def token_places(self, text: str, /, *, skip: Collection[SkippedTokens] = ()) -> list[tuple[int, int]]:
        """Return which characters of a text stand behind each token of `encode_tokens`."""
        return self.model.token_places(text, prompt=self._prompt_text, skip=skip)

    @property
    def _prompt_text(self) -> str:
        return choose_prompt(self.model.folder, prompt=self.prompt)

    def _for_role(self, role: Role) -> PromptedEncoder:
        if self.role is None and self.prompt is not None:
            return self
        return prompt_for_role(self.model, role, progress=self.progress, warn=self.warn)


def prompt_for_role(model: SentenceEncoder, role: Role, *, progress: bool, warn: bool) -> PromptedEncoder:
    """Return a model with its own prompt for a role; where its folder names none, with its default prompt."""
    name = next((name for name in ROLE_PROMPTS[role] if name in model.folder.prompts), "")
    way = model.way(next((name for name in ROLE_PROMPTS[role] if name in model.ways), None))
    return PromptedEncoder(model=way, prompt=model.folder.prompts.get(name), label=name, role=role, progress=progress, warn=warn)


def prompt_with_text(model: SentenceEncoder, prompt: str | None, *, progress: bool, warn: bool) -> PromptedEncoder:
    """Return a model with a prompt; None is the default one. A prompt that the folder names has that name as its label."""
    folder, label = model.folder, ""
    if prompt is not None and prompt != choose_prompt(folder):
        named = next((name for name, text in folder.prompts.items() if text == prompt), None)
        label = named or f"prompt-{hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
    return PromptedEncoder(model=model, prompt=prompt, label=label, progress=progress, warn=warn)


def choose_prompt(folder: ModelFolder, *, prompt: str | None = None, prompt_name: str | None = None) -> str:
    """Return the prompt itself, or the one of that name, or the folder's default, or none at all."""
    if prompt is not None:
        return prompt
    name = prompt_name or folder.default_prompt
    if name is None:
        return ""
    if name not in folder.prompts:
        known = ", ".join(folder.prompts) or "none"
        raise UsageError(f"the model has no prompt named {name!r}; it has: {known}")
    return folder.prompts[name]
