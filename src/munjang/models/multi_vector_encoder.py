"""Texts → one vector for every token: multi-vector models (late interaction, ColBERT), without torch.

Reads the folders of sentence-transformers' MultiVectorEncoder, PyLate and ColBERT (`engine/multi_vector.py`), and any sentence encoder,
untrained for it. Queries and documents are read differently: prompts or marker tokens, lengths, mask tokens that fill up queries, words
that documents leave out. `MultiVectorRole` is one of the two, and an encoder for a library, whose first stage compares the mean of the
tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from munjang.engine.folder import fingerprint, read_folder, require_sentence_encoder
from munjang.engine.head_graph import compute_head_width, write_head
from munjang.engine.modules import TransformerModule
from munjang.engine.multi_vector import MultiVectorFolder, as_multi_vector, is_multi_vector, read_multi_vector
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.session import open_session
from munjang.engine.transformer import TransformerEngine
from munjang.errors import FolderError, UsageError, quote
from munjang.models.batch_encoder import find_token_limit
from munjang.models.long_text import fit_texts
from munjang.models.prompted_encoder import Role
from munjang.models.registry import resolve
from munjang.models.save import save_multi_vector
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer, load_tokenizer
from munjang.text.validate_texts import validate_texts
from munjang.types import Floats, SkippedTokens, Vectors
from munjang.vectors.maxsim import TokenCodes, fit_codebook, maxsim
from munjang.vectors.similarity import normalize
from munjang.wording import brief_repr, name_facts, quote_place

Kept = TypeVar("Kept")


class MultiVectorEncoder:
    """Encodes texts as one vector for every token, to be compared by MaxSim."""

    def __init__(self, folder: MultiVectorFolder, tokenizer: Tokenizer, engine: TransformerEngine, *, name: str) -> None:
        self.folder, self.tokenizer, self.engine, self.name = folder, tokenizer, engine, name
        self.max_length = find_token_limit(folder.encoder, tokenizer, positions=engine.max_tokens, asked=None)
        self.dimension = compute_head_width(folder.head, engine.hidden_size)
        builder = GraphBuilder()
        builder.name_output(write_head(builder, "rows", None, folder.head, engine.hidden_size), "vectors")
        self._head = open_session(builder, [("rows", FLOAT, ["T", engine.hidden_size])], [("vectors", ["T", self.dimension])], threads=1)
        self._skipped = frozenset(number for word in folder.skip_words if (number := tokenizer.find_id(word)) is not None)
        self._markers = {role: self._find_marker(marker) for role, marker in folder.markers.items()}

    @classmethod
    def load(cls, name: str | Path | None = None, *, threads: int | None = None) -> MultiVectorEncoder:
        """Load a multi-vector model by name or path; a sentence encoder is taken as one, with its own token vectors."""
        if threads is not None and threads < 1:
            raise UsageError(f"threads={threads}, expected 1 or more")
        place = resolve(name)
        if is_multi_vector(place.path):
            folder = read_multi_vector(place.path)
        else:
            plain = read_folder(place.path)
            require_sentence_encoder(plain)
            folder = as_multi_vector(plain)
        base = folder.encoder.base
        if not isinstance(base, TransformerModule):
            raise FolderError(f"{place.path}: a static model's tokens do not know their context, expected a transformer")
        return cls(folder, load_tokenizer(base.folder), TransformerEngine(folder.encoder, threads=threads), name=place.name)

    def __repr__(self) -> str:
        return name_facts("MultiVectorEncoder", [quote_place(self.name), f"{self.dimension:,} dimensions a token"])

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        parts = (self.folder.prompts, self.folder.markers, self.folder.expansion, self.folder.skip_words, self.folder.query_length)
        about = hashlib.sha256(repr((parts, self.folder.document_length, self.folder.keep_ids)).encode()).hexdigest()[:16]
        return fingerprint(self.folder.encoder, settings=f"multi-vector {about}")

    def encode_query(self, texts: Iterable[str], /) -> list[Vectors]:
        """Return the token vectors of each query."""
        return self._encode(validate_texts(texts), "query")

    def encode_document(self, texts: Iterable[str], /) -> list[Vectors]:
        """Return the token vectors of each document."""
        return self._encode(validate_texts(texts), "document")

    def similarity(self, queries: Sequence[Vectors], documents: Sequence[Vectors]) -> Floats:
        """Return the MaxSim of each query with each document: the sum over the query's tokens, or its mean if the model says so."""
        whole = np.concatenate([*documents, np.zeros((1, self.dimension), np.float32)])
        book = fit_codebook(whole, "float32")
        codes = TokenCodes.join([book.quantize(each) for each in documents], book)
        rows = [maxsim(each, codes, book) * (1 if self.folder.is_mean else len(each)) for each in queries]
        scores: Floats = np.stack(rows) if rows else np.zeros((0, len(documents)), np.float32)
        return scores

    def for_queries(self) -> MultiVectorRole:
        """Return the encoder of queries."""
        return MultiVectorRole(self, "query")

    def for_documents(self) -> MultiVectorRole:
        """Return the encoder of documents."""
        return MultiVectorRole(self, "document")

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one vector for each document, as a library's first stage compares them; a library asks for its own two views."""
        return self.for_documents().encode(texts)

    def save(self, path: str | Path) -> None:
        """Write a folder that sentence-transformers' MultiVectorEncoder loads with equal vectors."""
        save_multi_vector(self.folder, self.tokenizer, Path(path), max_length=self.max_length)

    def _encode(self, texts: list[str], role: Role) -> list[Vectors]:
        prepared = self._prepare(texts, role)
        results: list[Vectors] = [np.zeros((0, self.dimension), np.float32)] * len(texts)
        for batch in plan_batches([len(ids) for ids, _ in prepared]):
            ids, seen = [prepared[number][0] for number in batch], [prepared[number][1] for number in batch]
            hidden_TW = self.engine.expand_tokens(ids, seen)
            rows_TD = self._head.run({"rows": hidden_TW}, ["vectors"])[0]
            ends = np.cumsum([len(one) for one in ids]).tolist()
            for number, one, end in zip(batch, ids, ends, strict=True):
                results[number] = rows_TD[end - len(one) : end][self.choose_tokens(one, role)]
        return results

    def choose_tokens(self, ids: Sequence[int], role: Role) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which tokens are compared."""
        wanted_T = np.ones(len(ids), bool)
        if role in self.folder.skip_roles and self._skipped:
            wanted_T &= np.fromiter((number not in self._skipped for number in ids), bool, len(ids))
        if role != "query" and self.folder.keep_ids:
            wanted_T &= np.isin(np.asarray(ids), np.asarray(self.folder.keep_ids))
        return wanted_T

    def _prepare(self, texts: list[str], role: Role) -> list[tuple[list[int], int]]:
        """Return the ids of each text, mask tokens included, and how many of them are attended to."""
        folder, expansion = self.folder, self.folder.expansion if role == "query" else None
        prompt = folder.prompts.get(role, "")
        base = folder.encoder.base
        lowers = isinstance(base, TransformerModule) and base.lowercase
        whole = [(prompt + text).lower() if lowers else prompt + text for text in texts]
        marker = self._markers.get(role)
        ids = self.tokenizer.encode(whole)
        if marker is not None:
            before = self.tokenizer.special_around[0]
            ids = [[*one[:before], marker, *one[before:]] for one in ids]
        limit = folder.query_length if role == "query" else folder.document_length
        if expansion is not None and expansion.is_fixed:
            limit = expansion.length
        limits = [each for each in (limit, self.max_length) if each is not None]
        cut = fit_texts(ids, self.tokenizer, limit=min(limits, default=None), policy="truncate").ids
        if expansion is None:
            return [(one, len(one)) for one in cut]
        filler = self._find_filler(expansion.token)
        filled = [[*one, *[filler] * (expansion.length - len(one))] for one in cut]
        return [(one, len(one) if expansion.is_attended else len(own)) for one, own in zip(filled, cut, strict=True)]

    def _find_filler(self, token: str | None) -> int:
        number = self.tokenizer.mask_id if token is None else self.tokenizer.find_id(token)
        if number is None:
            what = "a mask token" if token is None else quote(token)
            raise FolderError(f"{self.folder.encoder.path}: queries are filled up with {what}, which the tokenizer does not have")
        return number

    def _find_marker(self, marker: str) -> int:
        number = self.tokenizer.find_id(marker)
        number = self.tokenizer.find_id(marker.split(None, 1)[0]) if number is None else number
        if number is None:
            raise FolderError(f"{self.folder.encoder.path}: texts begin with {quote(marker)}, which the tokenizer does not have")
        return number


@brief_repr
@dataclass(frozen=True)
class MultiVectorRole:
    """A multi-vector model for queries or for documents, as a library takes it."""

    model: MultiVectorEncoder
    role: Role

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        return self.model.dimension

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        return self.model.fingerprint

    @property
    def max_length(self) -> int | None:
        """How many tokens are read of a text."""
        own = self.model.folder.query_length if self.role == "query" else self.model.folder.document_length
        return min((each for each in (own, self.model.max_length) if each is not None), default=None)

    def for_queries(self) -> MultiVectorRole:
        """Return the encoder of queries."""
        return MultiVectorRole(self.model, "query")

    def for_documents(self) -> MultiVectorRole:
        """Return the encoder of documents."""
        return MultiVectorRole(self.model, "document")

    def count_tokens(self, texts: Iterable[str], /) -> list[int]:
        """Return how many tokens each text has, before any cut."""
        extra = len(self.model.tokenizer.encode_plain([self.model.folder.prompts.get(self.role, "")])[0])
        extra += self.role in self.model.folder.markers
        return [len(ids) + extra for ids in self.model.tokenizer.encode(list(texts))]

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return the mean of each text's token vectors, at unit length."""
        return self.encode_with_tokens(texts, keep=len)[0]

    def encode_with_tokens(
        self, texts: Iterable[str], /, *, keep: Callable[[Vectors], Kept], skip: Collection[SkippedTokens] = ()
    ) -> tuple[Vectors, list[Kept]]:
        """Return what `encode` returns, and what `keep` makes of each text's token vectors; the model itself says which are skipped."""
        del skip
        rows = self.model._encode(validate_texts(texts), self.role)
        means = [each.mean(axis=0) if len(each) else np.zeros(self.dimension, np.float32) for each in rows]
        vectors_ND = normalize(np.stack(means)) if means else np.zeros((0, self.dimension), np.float32)
        return vectors_ND, [keep(each) for each in rows]

    def token_places(self, text: str, /, *, skip: Collection[SkippedTokens] = ()) -> list[tuple[int, int]]:
        """Return no places: tokens that only a model put there stand for no characters."""
        del text, skip
        return []
