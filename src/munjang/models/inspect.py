"""What a model sees in one sentence, and which tokens make two sentences alike.

A model and texts come in; typed tables of numbers go out, computed by the same engine that encodes. Showing them is left to `cli` and
`report`. Texts beyond the model's limit are cut, as in `encode`.

Shapes: N tokens of the first text, M of the second, D width of the hidden states.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.engine.modules import (
    DenseModule,
    LayerNormModule,
    Module,
    NormalizeModule,
    PoolingModule,
    StaticModule,
    TransformerModule,
)
from munjang.models.long_text import fit_texts
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.validate_texts import validate_text
from munjang.types import Floats, Pooling, Vectors, check_encoder
from munjang.vectors.similarity import similarity
from munjang.wording import brief_repr

Exact = NDArray[np.float64]


@brief_repr
@dataclass(frozen=True)
class Token:
    """One token as the model gets it."""

    text: str
    id: int
    segment: int
    position: int
    mask: int
    special: bool
    start: int
    """The first character of the text that it stands for; prompt and special tokens included, they stand for none."""
    end: int
    pooled: bool
    """Whether it counts in the sentence vector."""


@brief_repr
@dataclass(frozen=True)
class Layer:
    """One layer's output."""

    name: str
    shape: tuple[int, ...]
    mean_norm: float | None
    """The mean length of its rows; None where only the shape is known."""


@brief_repr
@dataclass(frozen=True, eq=False)
class Inspection:
    """Everything between a sentence and its vector."""

    text: str
    prompt: str
    tokens: tuple[Token, ...]
    tokens_before_cut: int
    layers: tuple[Layer, ...]
    hidden_ND: Vectors
    """The last layer's output."""
    vector: Vectors

    @property
    def was_cut(self) -> bool:
        """Whether the text was longer than the model's limit."""
        return self.tokens_before_cut > len(self.tokens)

    def to_json(self) -> dict[str, Any]:
        """Return all but the hidden states, which are large, as JSON has it."""
        kept = {"text": self.text, "prompt": self.prompt, "tokens_before_cut": self.tokens_before_cut, "vector": self.vector.tolist()}
        return {**kept, "tokens": [asdict(each) for each in self.tokens], "layers": [asdict(each) for each in self.layers]}


@dataclass(frozen=True)
class TokenPair:
    """A token of the first sentence with one of the second."""

    first: int
    second: int
    cosine: float
    contribution: float | None


@brief_repr
@dataclass(frozen=True, eq=False)
class TokenComparison:
    """Two sentences, token by token."""

    first: Inspection
    second: Inspection
    score: float
    """The cosine of the two sentence vectors."""
    cosine_NM: Vectors
    """The cosine of every token with every token, by their last hidden states."""
    contribution_NM: Exact | None
    """What each pair of tokens adds to the score, exactly: it sums to the score. None where the vector is no weighted sum of tokens."""
    best_pairs: tuple[TokenPair, ...]
    """Best partners, greedily by cosine, each token once; special tokens left out."""

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON has it."""
        return {
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "score": self.score,
            "cosine": self.cosine_NM.tolist(),
            "contribution": None if self.contribution_NM is None else self.contribution_NM.tolist(),
            "best_pairs": [asdict(pair) for pair in self.best_pairs],
        }


def inspect_text(model: SentenceEncoder, text: str) -> Inspection:
    """Show a sentence as the model sees it, with the prompt that `encode` would use."""
    text = validate_text(text, name="text")
    check_encoder(model, "model")
    prompt = model.folder.prompts.get(model.folder.default_prompt or "", "")
    tokens, before_cut = _list_tokens(model, text, prompt)
    outputs = model.engine.layer_outputs([token.id for token in tokens]) if tokens else []
    [vector], [hidden_ND] = model.encode_with_tokens([text], keep=np.asarray, warn=False)
    return Inspection(text, prompt, tokens, before_cut, (*_describe_layers(outputs), *_run_tail(model, len(vector))), hidden_ND, vector)


def compare_tokens(model: SentenceEncoder, a: str, b: str) -> TokenComparison:
    """Show which tokens make two sentences alike."""
    first, second = inspect_text(model, a), inspect_text(model, b)
    cosine_NM = similarity(first.hidden_ND, second.hidden_ND)
    contribution_NM = _compute_contributions(model, first, second)
    return TokenComparison(
        first=first,
        second=second,
        score=float(similarity(first.vector, second.vector)[0, 0]),
        cosine_NM=cosine_NM,
        contribution_NM=contribution_NM,
        best_pairs=_find_best_pairs(first, second, cosine_NM, contribution_NM),
    )


def compute_pooling_weights(modules: tuple[Module, ...], pooled: list[bool]) -> Exact | None:
    """Return each token's weight in the sentence vector, up to one common factor; None where it is no weighted sum.

    >>> compute_pooling_weights((PoolingModule(("weightedmean",)),), [True, True]).tolist()
    [1.0, 2.0]
    """
    if any(isinstance(module, DenseModule | LayerNormModule) for module in modules):
        return None
    poolings = [module for module in modules if isinstance(module, PoolingModule)]
    modes: tuple[Pooling, ...] = poolings[0].modes if poolings else ("mean",)
    mask_N = np.array(pooled, np.float64)
    if modes in (("mean",), ("mean_sqrt_len",)):
        return mask_N
    if modes == ("weightedmean",):
        return mask_N * np.arange(1, len(mask_N) + 1)
    if modes in (("cls",), ("lasttoken",)) and all(pooled):
        only_N = np.zeros(len(mask_N))
        only_N[:1] = modes == ("cls",)
        only_N[-1:] += modes == ("lasttoken",)
        return only_N
    return None


def _list_tokens(model: SentenceEncoder, text: str, prompt: str) -> tuple[tuple[Token, ...], int]:
    base = model.folder.base
    whole = prompt + text
    lowercase = isinstance(base, TransformerModule) and base.lowercase
    seen = model.tokenizer.encode_with_offsets(whole.lower() if lowercase else whole)
    rows = list(zip(seen.ids, seen.tokens, seen.offsets, seen.special_mask, strict=True))
    if isinstance(base, StaticModule):
        rows = [row for row in rows if not row[3]]
    length = len(rows)
    kept = fit_texts([[row[0] for row in rows]], model.tokenizer, limit=model.max_length, policy="truncate").ids[0]
    if len(kept) < length:
        closing = seen.special_mask[::-1].index(0) if 0 in seen.special_mask else 0
        rows = rows[: len(kept) - closing] + rows[length - closing :]
    hidden = _count_hidden_prefix(model, prompt)
    return tuple(
        Token(
            text=token,
            id=number,
            segment=0,  # one sentence is one segment
            position=model.engine.first_position + place,
            mask=1,  # a sentence on its own is not padded
            special=bool(special),
            start=max(start - len(prompt), 0),
            end=max(end - len(prompt), 0),
            pooled=place >= hidden,
        )
        for place, (number, token, (start, end), special) in enumerate(rows)
    ), length


def _count_hidden_prefix(model: SentenceEncoder, prompt: str) -> int:
    keeps_prompt = all(module.include_prompt for module in model.folder.modules if isinstance(module, PoolingModule))
    return model.tokenizer.prefix_length(prompt) if prompt and not keeps_prompt else 0


def _describe_layers(outputs: list[Vectors]) -> list[Layer]:
    names = ["token vectors" if len(outputs) == 1 else "embeddings", *(f"layer {number}" for number in range(1, len(outputs)))]
    return [Layer(name, output.shape, float(np.linalg.norm(output, axis=1).mean())) for name, output in zip(names, outputs, strict=False)]


def _run_tail(model: SentenceEncoder, width: int) -> list[Layer]:
    found: list[Layer] = []
    size = model.engine.hidden_size
    for module in model.folder.modules:
        if isinstance(module, PoolingModule):
            size *= len(module.modes)
            found.append(Layer(f"pooling ({' + '.join(module.modes)})", (size,), None))
        elif isinstance(module, StaticModule):
            found.append(Layer("pooling (mean)", (size,), None))
        elif isinstance(module, DenseModule):
            size = module.out_features
            found.append(Layer(f"dense ({module.activation})", (size,), None))
        elif isinstance(module, LayerNormModule):
            found.append(Layer("layer norm", (size,), None))
        elif isinstance(module, NormalizeModule):
            found.append(Layer("normalize", (size,), None))
    return found if width == size else [*found, Layer("cut", (width,), None)]


def _compute_contributions(model: SentenceEncoder, first: Inspection, second: Inspection) -> Exact | None:
    """Split the cosine of u = Σ w_i h_i and v = Σ w_j h_j into its terms w_i w_j h_i·h_j / (|u| |v|)."""
    parts = []
    for one in (first, second):
        weights_N = compute_pooling_weights(model.folder.modules, [token.pooled for token in one.tokens])
        if weights_N is None:
            return None
        parts.append(one.hidden_ND[:, : len(one.vector)].astype(np.float64) * weights_N[:, None])
    lengths = [float(np.linalg.norm(part_ND.sum(axis=0))) for part_ND in parts]
    share: Exact = parts[0] @ parts[1].T / max(lengths[0] * lengths[1], np.finfo(np.float64).tiny)
    return share


def _find_best_pairs(first: Inspection, second: Inspection, cosine_NM: Floats, contribution_NM: Exact | None) -> tuple[TokenPair, ...]:
    rows = [place for place, token in enumerate(first.tokens) if not token.special and token.pooled]
    columns = [place for place, token in enumerate(second.tokens) if not token.special and token.pooled]
    order = sorted(((row, column) for row in rows for column in columns), key=lambda pair: -cosine_NM[pair])
    taken_rows: set[int] = set()
    taken_columns: set[int] = set()
    found = []
    for row, column in order:
        if row not in taken_rows and column not in taken_columns:
            taken_rows.add(row)
            taken_columns.add(column)
            share = None if contribution_NM is None else float(contribution_NM[row, column])
            found.append(TokenPair(row, column, float(cosine_NM[row, column]), share))
    return tuple(found)
