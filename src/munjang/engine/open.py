"""A described folder → the engine that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from munjang.engine.devices import CPU, Placement
from munjang.engine.folder import ModelFolder
from munjang.engine.head_graph import compute_head_width, write_head, write_normalize
from munjang.engine.modules import PoolingModule, StaticModule
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.session import Session, open_session
from munjang.engine.transformer import TransformerEngine
from munjang.engine.weights import find_weights
from munjang.errors import FolderError
from munjang.text.word_tokenizer import read_words
from munjang.types import Ints, Vectors


class StaticEngine:
    """Turns token ids into the mean of their vectors."""

    first_position = 0
    layers = 0
    heads = 0
    max_tokens: int | None = None
    placement = CPU

    def __init__(self, folder: ModelFolder, *, threads: int | None = None) -> None:
        module = folder.base
        if not isinstance(module, StaticModule):
            raise FolderError(f"{folder.path}: holds no static embedding")
        if any(isinstance(other, PoolingModule) and other.modes != ("mean",) for other in folder.modules):
            raise FolderError(f"{folder.path}: vectors of words are pooled by their mean here, and in no other way")
        self._words: WordVectors = _read_bag(module) if module.counts else _read_table(module)
        self.vocabulary_size, self.hidden_size = self._words.count, self._words.width
        self._head, self.dimension = _open_head(folder, module, self.hidden_size, threads)

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text."""
        pooled_BD = np.stack([self._words.pool(np.asarray(one[hidden_prefix:], np.int64)) for one in ids])
        return pooled_BD if self._head is None else self._head.run({"pooled": pooled_BD}, ["vectors"])[0]

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        return (self.vectors(ids, hidden_prefix=hidden_prefix) for ids in batches)

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text."""
        return self.vectors(ids, hidden_prefix=hidden_prefix), self._rows([number for one in ids for number in one])

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order."""
        return (self.vectors_and_tokens(ids, hidden_prefix=hidden_prefix) for ids in batches)

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return the token vectors: the only layer there is."""
        return [self._rows(ids)]

    def _rows(self, ids: Sequence[int]) -> Vectors:
        return self._words.rows(np.asarray(ids, np.int64))


class WordVectors(Protocol):
    """What each word of a vocabulary stands for."""

    count: int
    width: int

    def rows(self, ids_T: Ints) -> Vectors:
        """Return the vector of each word."""
        ...

    def pool(self, ids_T: Ints) -> Vectors:
        """Return the vector of a text; zeros for one without words."""
        ...


class WordTable:
    """A vector for each word; a text is their mean."""

    def __init__(self, table_VD: Vectors, row_of: Ints | None) -> None:
        self._table_VD, self._row_of = table_VD, row_of
        self.count, self.width = int(table_VD.shape[0] if row_of is None else row_of.shape[0]), int(table_VD.shape[1])

    def rows(self, ids_T: Ints) -> Vectors:
        """Return the rows of the table."""
        rows_TD: Vectors = self._table_VD[ids_T if self._row_of is None else self._row_of[ids_T]]
        return rows_TD

    def pool(self, ids_T: Ints) -> Vectors:
        """Average the rows."""
        if not len(ids_T):
            return np.zeros(self.width, np.float32)
        mean_D: Vectors = self.rows(ids_T).mean(axis=0, dtype=np.float32)
        return mean_D


class BagOfWords:
    """A dimension for each word; a text has its words' weights there, once or as often as it has the word."""

    def __init__(self, weights_V: Vectors, *, adds: bool) -> None:
        self._weights_V, self._adds = weights_V, adds
        self.count = self.width = len(weights_V)

    def rows(self, ids_T: Ints) -> Vectors:
        """Return a row with one weight for each word."""
        rows_TV = np.zeros((len(ids_T), self.width), np.float32)
        rows_TV[np.arange(len(ids_T)), ids_T] = self._weights_V[ids_T]
        return rows_TV

    def pool(self, ids_T: Ints) -> Vectors:
        """Add the weights, or set them."""
        vector_V = np.zeros(self.width, np.float32)
        if self._adds:
            np.add.at(vector_V, ids_T, self._weights_V[ids_T])
        else:
            vector_V[ids_T] = self._weights_V[ids_T]
        return vector_V


def _read_bag(module: StaticModule) -> BagOfWords:
    """Return the weights of a bag of words: each word's, or that of its lower case, or the one of unknown words."""
    path = module.folder / module.words
    words, config = read_words(path)
    weights, unknown, adds = (
        config.get("word_weights") or {},
        config.get("unknown_word_weight", 1),
        config.get("cumulative_term_frequency", True),
    )
    if not isinstance(weights, dict) or not isinstance(adds, bool):
        raise FolderError(f"{path}: word_weights must be a table of numbers, cumulative_term_frequency true or false")
    chosen = [weights.get(word, weights.get(word.lower(), unknown)) for word in dict.fromkeys(words)]
    if not all(isinstance(weight, int | float) and not isinstance(weight, bool) and abs(weight) < LARGEST_WEIGHT for weight in chosen):
        raise FolderError(f"{path}: word_weights and unknown_word_weight must be finite numbers")
    return BagOfWords(np.array(chosen, np.float32), adds=adds)


LARGEST_WEIGHT = 1e30


def _read_table(module: StaticModule) -> WordTable:
    weights = find_weights(module.folder)
    name = next((name for name in ("embedding.weight", "embeddings", "emb_layer.weight") if name in weights), None)
    if name is None or len(weights.shape(name)) != 2:
        raise FolderError(f"{module.folder}: expected a tensor 'embedding.weight' or 'embeddings' of two dimensions")
    table_VD = weights[name].astype(np.float32)
    row_of = weights["mapping"].astype(np.int64) if "mapping" in weights else None
    if row_of is not None and (row_of.ndim != 1 or row_of.min(initial=0) < 0 or row_of.max(initial=0) >= len(table_VD)):
        raise FolderError(f"{module.folder}: 'mapping' points outside the embeddings")
    if "weights" in weights:
        factors = weights["weights"].astype(np.float32)
        if row_of is not None:
            table_VD, row_of = table_VD[row_of], None
        if factors.shape != (len(table_VD),):
            raise FolderError(f"{module.folder}: 'weights' has shape {factors.shape}, expected ({len(table_VD)},)")
        table_VD = table_VD * factors[:, None]
    return WordTable(table_VD, row_of)


def _open_head(folder: ModelFolder, module: StaticModule, width: int, threads: int | None) -> tuple[Session | None, int]:
    if len(folder.modules) == 1 and not module.normalize:
        return None, width
    builder = GraphBuilder()
    x = write_normalize(builder, "pooled") if module.normalize else "pooled"
    vectors, dimension = write_head(builder, x, None, folder.modules[1:], width), compute_head_width(folder.modules[1:], width)
    builder.name_output(vectors, "vectors")
    return open_session(builder, [("pooled", FLOAT, ["B", width])], [("vectors", ["B", dimension])], threads=threads), dimension


class Engine(Protocol):
    """Turns token ids into vectors; safe from many threads."""

    dimension: int
    hidden_size: int
    layers: int
    heads: int
    vocabulary_size: int
    max_tokens: int | None
    first_position: int
    placement: Placement
    """Where it computes, and how large its batches are."""

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text, in one run."""
        ...

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        ...

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text, in one run."""
        ...

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order."""
        ...

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return every layer's output for one text."""
        ...


def open_engine(folder: ModelFolder, *, placement: Placement = CPU, threads: int | None = None) -> Engine:
    """Start the engine that fits the folder; a static one is a table, which runs on the CPU in float32 wherever it is asked to."""
    if isinstance(folder.base, StaticModule):
        return StaticEngine(folder, threads=threads)
    return TransformerEngine(folder, placement=placement, threads=threads)
