"""Vectors equal sentence-transformers' for six families, all poolings, all modules, both dialects."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import TEXTS, Dense

from munjang.models.long_text import TruncationWarning
from munjang.models.sentence_encoder import SentenceEncoder

BOUND = 1e-5
FAMILIES = ("bert", "roberta", "xlm-roberta", "electra", "distilbert", "mpnet")
POOLINGS = ("cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken")
IDENTITY = "torch.nn.modules.linear.Identity"
GELU = "torch.nn.modules.activation.GELU"
RELU = "torch.nn.modules.activation.ReLU"
SIGMOID = "torch.nn.modules.activation.Sigmoid"

CASES = [
    # every family in both dialects, each with other poolings and modules
    ("bert", ("mean",), ("normalize",), "new"),
    ("bert", ("cls", "max", "mean"), (Dense(16), "normalize"), "legacy"),
    ("roberta", ("cls", "mean"), (), "legacy"),
    ("roberta", ("max",), ("layernorm",), "new"),
    ("xlm-roberta", ("cls",), (Dense(24, GELU, bias=False),), "legacy"),
    ("xlm-roberta", ("weightedmean",), ("normalize",), "new"),
    ("electra", ("mean_sqrt_len",), ("layernorm", Dense(40, IDENTITY), "normalize"), "legacy"),
    ("electra", ("cls",), (), "new"),
    ("distilbert", ("lasttoken",), (Dense(16, IDENTITY, bias=False), "layernorm"), "legacy"),
    ("distilbert", ("mean_sqrt_len",), (Dense(16, GELU),), "new"),
    ("mpnet", ("mean",), ("normalize",), "legacy"),
    ("mpnet", ("cls",), (), "legacy"),
    ("mpnet", ("lasttoken", "mean"), (), "new"),
    # every pooling alone, every activation, residual connections
    *(("bert", (pooling,), (), "legacy") for pooling in POOLINGS),
    ("bert", ("mean",), (Dense(32, RELU, residual=True),), "legacy"),
    ("bert", ("mean",), (Dense(20, SIGMOID, residual=True), Dense(8, bias=False)), "new"),
    ("bert", ("cls",), ("normalize", "layernorm"), "new"),
    # concatenations; the new dialect keeps the order that was written
    ("bert", POOLINGS, (), "legacy"),
    ("bert", ("mean", "cls"), (), "new"),
]


def name(case):
    family, pooling, modules, dialect = case
    kinds = [module if isinstance(module, str) else module.activation.rsplit(".", 1)[1] for module in modules]
    return "-".join([family, "+".join(pooling), *kinds, dialect])


def encoded(folder, texts=TEXTS, **options):
    return SentenceEncoder.load(folder).encode_with_report(texts, **options).vectors


@pytest.mark.parametrize("case", CASES, ids=name)
def test_vectors_equal_the_authoritys(case, tiny_folder, authority):
    family, pooling, modules, dialect = case
    folder = tiny_folder(family, pooling=pooling, modules=modules, dialect=dialect)
    ours, theirs = encoded(folder), authority(folder, TEXTS)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= BOUND


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_alone_has_the_authoritys_vector(family, tiny_folder, authority):
    folder = tiny_folder(family)
    model = SentenceEncoder.load(folder)
    theirs = authority(folder, TEXTS[:5], batch_size=1)
    for text, vector in zip(TEXTS[:5], theirs, strict=True):
        assert np.abs(model.encode(text) - vector).max() <= BOUND


def test_vectors_are_not_trivially_alike(tiny_folder):
    vectors = encoded(tiny_folder("bert"), TEXTS[:8])
    products = vectors @ vectors.T
    assert products[~np.eye(8, dtype=bool)].max() < 0.995


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_a_text_may_fill_every_position(family, tiny_folder, authority):
    # distances beyond 128 reach the last of MPNet's buckets; offsets of RoBERTa's positions reach the last row
    folder = tiny_folder(family, positions=300, max_length=300)
    texts = ["coffee " * 400, "the cat is in the train " * 30, "rain"]
    with pytest.warns(TruncationWarning, match="1 of 3 texts is longer than 300 tokens"):
        ours = SentenceEncoder.load(folder).encode(texts)
    assert np.abs(ours - authority(folder, texts)).max() <= BOUND


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "relu"])
def test_hidden_activations_equal_the_authoritys(activation, tiny_folder, authority):
    folder = tiny_folder("bert", activation=activation)
    assert np.abs(encoded(folder) - authority(folder, TEXTS)).max() <= BOUND


@pytest.mark.parametrize("family", FAMILIES)
def test_token_vectors_equal_the_authoritys(family, tiny_folder, authority):
    folder = tiny_folder(family)
    theirs = _token_vectors(folder, TEXTS[:4])
    for ours, rows in zip(SentenceEncoder.load(folder).encode_tokens(TEXTS[:4]), theirs, strict=True):
        assert ours.vectors.shape == rows.shape == (len(ours.tokens), 32)
        assert np.abs(ours.vectors - rows).max() <= BOUND


def _token_vectors(folder, texts):
    import sentence_transformers as st

    model = st.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return [rows.numpy() for rows in model.encode(texts, output_value="token_embeddings", show_progress_bar=False)]
