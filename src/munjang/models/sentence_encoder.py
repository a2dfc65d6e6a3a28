"""SentenceEncoder: texts → vectors, and nothing else.

It joins what other files do: tokenizer and engine (`batch_encoder`), prompts, the checks while loading. Folders are read and written
elsewhere; search, training and servers are functions over this object. One encoder may be used from many threads.

A text's vector does not depend on what it is encoded with: in float32 no number differs by more than 2e-6 of the vector's length, whatever
the batch; 2e-5 where torch runs the model. With compute="int8" rounding can fall on either side of a step, which moves single numbers by up
to 0.03 (cosine above 0.99).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from munjang.engine.folder import ModelFolder, fingerprint, read_folder, require_sentence_encoder
from munjang.engine.modules import NormalizeModule, PoolingModule, StaticModule, TransformerModule
from munjang.engine.open import Engine
from munjang.errors import UsageError
from munjang.limits import LIMITS
from munjang.models.batch_encoder import (
    BlockEncoder,
    Encoded,
    EncodeOptions,
    Kept,
    TokenVectors,
    check_options,
    choose_token_options,
    find_hidden_prefix,
    join_blocks,
)
from munjang.models.long_text import warn_of_cut
from munjang.models.open_engine import check_engine
from munjang.models.progress import progress_bar
from munjang.models.prompted_encoder import PromptedEncoder, choose_prompt, prompt_for_role, prompt_with_text
from munjang.models.registry import resolve
from munjang.models.save import save_folder
from munjang.models.ways import Way, WayOptions, open_ways
from munjang.options import (
    ComputeOption,
    DeviceOption,
    DimensionsOption,
    EngineOption,
    LongTextOption,
    NormalizeOption,
    PoolingOption,
    PrecisionOption,
    PromptNameOption,
)
from munjang.other_names import ENCODE, LOAD, explain_other_names
from munjang.text.tokenizer import Tokenizer
from munjang.text.validate_texts import stream_texts, validate_text, validate_texts
from munjang.types import (
    DEFAULT_COMPUTE,
    DEFAULT_DEVICE,
    DEFAULT_ENGINE,
    DEFAULT_LONG_TEXT,
    DEFAULT_PRECISION,
    Compute,
    Device,
    Floats,
    LongText,
    Pooling,
    Precision,
    SkippedTokens,
    Vectors,
)
from munjang.vectors.similarity import normalize as unit
from munjang.vectors.similarity import similarity, similarity_pairwise
from munjang.wording import count, name_facts, quote_place


class SentenceEncoder:
    """Encodes sentences as vectors whose distance reflects meaning.

    >>> model = SentenceEncoder.load()                                              # doctest: +SKIP
    >>> model.encode(["비가 온다", "It is raining"]).shape                              # doctest: +SKIP
    (2, 384)
    """

    def __init__(
        self,
        folder: ModelFolder,
        tokenizer: Tokenizer,
        engine: Engine,
        *,
        name: str,
        compute: Compute,
        max_length: int | None,
        task: str = "",
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.engine = engine
        self.name = name
        self.compute = compute
        self.max_length = max_length
        self.task = task
        """The route or the task of this way through the model; empty where it has one way only."""
        self.ways: dict[str, SentenceEncoder] = {}
        """Every way through the model by its name, this one included."""
        self._lowercase = isinstance(folder.base, TransformerModule) and folder.base.lowercase

    @classmethod
    @explain_other_names(LOAD)
    def load(
        cls,
        name: str | Path | None = None,
        *,
        compute: ComputeOption = DEFAULT_COMPUTE,
        threads: int | None = None,
        pooling: PoolingOption = None,
        max_length: int | None = None,
        device: DeviceOption = DEFAULT_DEVICE,
        engine: EngineOption = DEFAULT_ENGINE,
    ) -> SentenceEncoder:
        """Load a model by name or path; without one, the default model.

        `compute="int8"` is about 1.7 times as fast for a small loss; `pooling` is for plain encoder folders, which do not name one;
        `max_length` lowers the model's own limit of tokens. `device="auto"` computes on the best device that is installed and works, which
        `model.device` names; `engine="auto"` runs families that the fast engine does not know through torch (the extra 'train').
        """
        check_engine(engine, device, compute)
        if threads is not None and threads < 1:
            raise UsageError(f"threads={threads}, expected 1 or more")
        found = resolve(name)
        folder = read_folder(found.path, pooling=pooling)
        require_sentence_encoder(folder)
        ways = open_ways(folder, WayOptions(engine=engine, device=device, compute=compute, threads=threads, max_length=max_length))
        chosen = next(iter(ways.values())).engine.placement.compute if compute == "auto" else compute
        return cls.join_ways(ways, name=found.name, compute=chosen)

    @classmethod
    def join_ways(cls, ways: Mapping[str, Way], *, name: str, compute: Compute) -> SentenceEncoder:
        """Return an encoder for each way through a model, which know each other; the first, which is the default."""
        encoders = {
            task: cls(way.folder, way.tokenizer, way.engine, name=name, compute=compute, max_length=way.max_length, task=task)
            for task, way in ways.items()
        }
        for encoder in encoders.values():
            encoder.ways = {task: other for task, other in encoders.items() if task}
        return next(iter(encoders.values()))

    def way(self, name: str | None) -> SentenceEncoder:
        """Return the way through the model of this route or task; this one where the model has none of that name."""
        return self.ways.get(name, self) if name else self

    def __repr__(self) -> str:
        limit = "no limit of tokens" if self.max_length is None else f"at most {count(self.max_length, 'token')}"
        size = [count(self.dimension, "dimension"), count(self.engine.layers, "layer")]
        where = [] if self.device == "cpu" else [f"on {self.device}"]
        return name_facts("SentenceEncoder", [quote_place(self.name), *size, self.compute, *where, limit])

    @property
    def device(self) -> Device:
        """Where the model computes; never "auto"."""
        return self.engine.placement.device

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        return min(self.folder.truncate_dimension or self.engine.dimension, self.engine.dimension)

    @property
    def prompts(self) -> dict[str, str]:
        """Prompts by name, from the model's folder."""
        return dict(self.folder.prompts)

    @property
    def pooling(self) -> Pooling | None:
        """How token vectors are pooled; None if there are no token vectors, or several poolings at once."""
        modes = next((module.modes for module in self.folder.modules if isinstance(module, PoolingModule)), ())
        return modes[0] if len(modes) == 1 else None

    @cached_property
    def fingerprint(self) -> str:
        """A short name that changes whenever the vectors would."""
        return self.fingerprint_as(self.compute)

    def fingerprint_as(self, compute: Compute) -> str:
        """Return the fingerprint of this model with another `compute`."""
        pooling = [(module.modes, module.include_prompt) for module in self.folder.modules if isinstance(module, PoolingModule)]
        prompt = self.folder.prompts.get(self.folder.default_prompt or "", "")
        settings = (compute, self.max_length, pooling, self._lowercase, prompt, self.dimension)
        return fingerprint(self.folder, settings=repr((*settings, self.task) if self.task else settings))

    @property
    def normalized(self) -> bool:
        """Whether the model itself normalises vectors to length 1."""
        last = self.folder.modules[-1]
        return isinstance(last, NormalizeModule) or (isinstance(last, StaticModule) and last.normalize)

    @explain_other_names(ENCODE)
    def encode(
        self,
        texts: str | Iterable[str],
        /,
        *,
        prompt: str | None = None,
        precision: PrecisionOption = DEFAULT_PRECISION,
        dimensions: DimensionsOption = None,
        normalize: NormalizeOption = False,
        prompt_name: PromptNameOption = None,
        long_text: LongTextOption = DEFAULT_LONG_TEXT,
        progress: bool = False,
    ) -> Floats:
        """Return the vector of a text, shape (d,), or of many texts, shape (n, d), in the caller's order.

        Equal texts are encoded once. `prompt_name` also chooses the route or the task of that name, where a model has several. `long_text`
        says how to handle texts beyond the model's limit; with "truncate" one TruncationWarning says how many there were, and
        `encode_with_report` which.
        """
        way = self.way(prompt_name)
        options = way._options(prompt, prompt_name, long_text, precision, dimensions, normalize)
        if isinstance(texts, str):
            vectors: Floats = way._all([texts], options, progress).vectors[0]
            return vectors
        return way._all(texts, options, progress).vectors

    @explain_other_names(ENCODE)
    def encode_with_report(
        self,
        texts: Iterable[str],
        /,
        *,
        prompt: str | None = None,
        prompt_name: PromptNameOption = None,
        long_text: LongTextOption = DEFAULT_LONG_TEXT,
        precision: PrecisionOption = DEFAULT_PRECISION,
        dimensions: DimensionsOption = None,
        normalize: NormalizeOption = False,
        progress: bool = False,
    ) -> Encoded:
        """Encode, and report how many tokens each text has and which were too long; never warns."""
        way = self.way(prompt_name)
        options = way._options(prompt, prompt_name, long_text, precision, dimensions, normalize)
        return way._all(texts, replace(options, warn=False), progress)

    @explain_other_names(ENCODE)
    def encode_stream(
        self,
        texts: Iterable[str],
        /,
        *,
        prompt: str | None = None,
        prompt_name: PromptNameOption = None,
        long_text: LongTextOption = DEFAULT_LONG_TEXT,
        precision: PrecisionOption = DEFAULT_PRECISION,
        dimensions: DimensionsOption = None,
        normalize: NormalizeOption = False,
        block: int = LIMITS.stream_texts,
    ) -> Iterator[Floats]:
        """Yield vectors of `block` texts at a time, in order, holding no more than that."""
        way = self.way(prompt_name)
        options = way._options(prompt, prompt_name, long_text, precision, dimensions, normalize)
        if block < 1:
            raise UsageError(f"block={block}, expected 1 or more texts")
        return (encoded.vectors for encoded in way._block_encoder.encode_blocks(stream_texts(texts), options, block))

    @explain_other_names(ENCODE)
    def encode_query(self, texts: str | Iterable[str], /) -> Floats:
        """Encode with the model's prompt for queries, if it has one."""
        return self.for_queries().encode(texts)

    @explain_other_names(ENCODE)
    def encode_document(self, texts: str | Iterable[str], /) -> Floats:
        """Encode with the model's prompt for documents, if it has one."""
        return self.for_documents().encode(texts)

    def for_queries(self, *, progress: bool = False, warn: bool = True) -> PromptedEncoder:
        """Return this model as an encoder of queries: with its prompt for them, if it has one."""
        return prompt_for_role(self, "query", progress=progress, warn=warn)

    def for_documents(self, *, progress: bool = False, warn: bool = True) -> PromptedEncoder:
        """Return this model as an encoder of documents: with its prompt for them, if it has one."""
        return prompt_for_role(self, "document", progress=progress, warn=warn)

    def with_prompt(self, prompt: str | None = None, /, *, progress: bool = False, warn: bool = True) -> PromptedEncoder:
        """Return this model as an encoder that puts `prompt` before every text; None is the model's default prompt.

        `progress` shows a bar while it encodes; without `warn` a text that is cut is no TruncationWarning.
        """
        return prompt_with_text(self, prompt, progress=progress, warn=warn)

    def count_tokens(self, texts: Iterable[str], /, *, prompt: str | None = None, prompt_name: str | None = None) -> list[int]:
        """Return the number of tokens of each text, including prompt and special tokens, without any truncation."""
        before = choose_prompt(self.folder, prompt=prompt, prompt_name=prompt_name) or ""
        return [len(ids) for ids in self.way(prompt_name)._block_encoder.token_ids([before + text for text in validate_texts(texts)])]

    @explain_other_names(ENCODE)
    def encode_tokens(
        self,
        texts: Iterable[str],
        /,
        *,
        prompt: str = "",
        skip: Collection[SkippedTokens] = (),
        normalize: bool = False,
        progress: bool = False,
    ) -> list[TokenVectors]:
        """Return the hidden state of every token; texts beyond the limit are truncated, and one TruncationWarning says how many.

        No prompt is put before a text unless one is given. `skip` leaves out "special" tokens, those of the "prompt", or "punctuation".
        """
        blocks = self.encode_tokens_stream(texts, prompt=prompt, skip=skip, normalize=normalize, progress=progress)
        return [one for block in blocks for one in block]

    @explain_other_names(ENCODE)
    def encode_tokens_stream(
        self,
        texts: Iterable[str],
        /,
        *,
        prompt: str = "",
        skip: Collection[SkippedTokens] = (),
        normalize: bool = False,
        block: int = LIMITS.stream_token_texts,
        progress: bool = False,
    ) -> Iterator[list[TokenVectors]]:
        """Yield the token vectors of `block` texts at a time, in order, holding no more than that."""
        if block < 1:
            raise UsageError(f"block={block}, expected 1 or more texts")
        options, wanted = choose_token_options(self.folder, self.tokenizer, prompt, skip), stream_texts(texts)

        def keep(ids: list[int], rows_TW: Vectors) -> TokenVectors:
            return TokenVectors(self.tokenizer.tokens(ids), ids, unit(rows_TW) if normalize else rows_TW)

        def blocks() -> Iterator[list[TokenVectors]]:
            with progress_bar("encode", len(wanted) if isinstance(wanted, list) else None, shown=progress) as advance:
                yield from self._block_encoder.encode_token_blocks(wanted, options, block, advance, keep)

        return blocks()

    def encode_with_tokens(
        self,
        texts: Iterable[str],
        /,
        *,
        keep: Callable[[Vectors], Kept],
        prompt: str | None = None,
        skip: Collection[SkippedTokens] = (),
        progress: bool = False,
        warn: bool = True,
    ) -> tuple[Vectors, list[Kept]]:
        """Return what `encode` returns, and what `keep` makes of each text's token rows (tokens × width), from the same pass.

        Nothing else of the token rows is held, so `keep` may compress them. Texts beyond the limit are truncated, and with `warn` one
        TruncationWarning says how many.
        """
        before = choose_prompt(self.folder, prompt=prompt)
        options, wanted = choose_token_options(self.folder, self.tokenizer, before, skip), validate_texts(texts)
        with progress_bar("encode", len(wanted), shown=progress) as advance:
            encoded, kept = self._block_encoder.encode_with_tokens(wanted, options, advance, lambda _, rows_TW: keep(rows_TW))
        if warn and encoded.too_long:
            warn_of_cut(len(encoded.too_long), len(wanted), self.max_length, in_python="shorten them", stacklevel=2)
        return encoded.vectors[:, : self.dimension], kept

    def token_places(self, text: str, /, *, prompt: str = "", skip: Collection[SkippedTokens] = ()) -> list[tuple[int, int]]:
        """Return which characters of a text stand behind each token of `encode_tokens`."""
        options = choose_token_options(self.folder, self.tokenizer, prompt, skip)
        return self._block_encoder.token_places(validate_text(text, name="text"), options)

    def similarity(self, a: Floats, b: Floats) -> Floats:
        """Return the similarity of all pairs, by the model's own metric (cosine by default)."""
        return similarity(a, b, metric=self.folder.similarity)

    def similarity_pairwise(self, a: Floats, b: Floats) -> Floats:
        """Return the similarity of each row of `a` with the same row of `b`."""
        return similarity_pairwise(a, b, metric=self.folder.similarity)

    def save(self, path: str | Path) -> None:
        """Write a folder that Munjang and sentence-transformers load with equal vectors."""
        save_folder(self.folder, self.tokenizer, Path(path), width=self.engine.hidden_size, max_length=self.max_length)

    @property
    def _block_encoder(self) -> BlockEncoder:
        is_static = isinstance(self.folder.base, StaticModule)
        return BlockEncoder(self.tokenizer, self.engine, self.max_length, is_static, self._lowercase, self.normalized)

    def _options(
        self,
        prompt: str | None,
        prompt_name: str | None,
        long_text: LongText,
        precision: Precision,
        dimensions: int | None,
        normalize: bool,
    ) -> EncodeOptions:
        text = choose_prompt(self.folder, prompt=prompt, prompt_name=prompt_name)
        if dimensions is None and self.folder.truncate_dimension:
            dimensions = self.dimension
        options = EncodeOptions(text, find_hidden_prefix(self.folder, self.tokenizer, text), long_text, precision, dimensions, normalize)
        return check_options(options, width=self.engine.dimension)

    def _all(self, texts: Iterable[str], options: EncodeOptions, progress: bool) -> Encoded:
        wanted = stream_texts(texts)
        with progress_bar("encode", len(wanted) if isinstance(wanted, list) else None, shown=progress) as advance:
            blocks = list(self._block_encoder.encode_blocks(wanted, options, LIMITS.stream_texts, advance))
            return join_blocks(blocks, self.engine.dimension, options)
