"""Arrow batch → Arrow batch, with the numbers of `encode`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.bulk.conftest import sentences

from munjang import SentenceEncoder, encode_batch
from munjang.bulk import encode_batch as module
from munjang.errors import InputError, UsageError

pyarrow = pytest.importorskip("pyarrow")
TEXTS = sentences(12)


def vectors_of(batch, column: str = "vector") -> np.ndarray:
    return np.array(batch.column(column).to_pylist())


@pytest.mark.parametrize("make", [pyarrow.record_batch, pyarrow.table], ids=["record batch", "table"])
def test_a_batch_stays_what_it_was_and_has_vectors(make, tiny_bert_folder):
    batch = make({"n": list(range(12)), "text": TEXTS})
    found = encode_batch(batch, "text", model=tiny_bert_folder)
    assert type(found) is type(batch)
    assert found.schema.names == ["n", "text", "vector"]
    assert str(found.schema.field("vector").type).startswith("list<")
    assert found.select(["n", "text"]).equals(batch)
    np.testing.assert_allclose(vectors_of(found), SentenceEncoder.load(tiny_bert_folder).encode(TEXTS), atol=2e-6)


@pytest.mark.parametrize("options", [{"precision": "int8"}, {"dimensions": 8, "normalize": True}, {"precision": "ubinary"}])
def test_the_options_are_those_of_encode(tiny_bert_folder, options):
    found = encode_batch(pyarrow.table({"text": TEXTS}), "text", model=tiny_bert_folder, into="v", **options)
    expected = SentenceEncoder.load(tiny_bert_folder, threads=1).encode(TEXTS, **options)
    assert np.array_equal(vectors_of(found, "v").astype(expected.dtype), expected)
    assert found.schema.field("v").type.value_type == pyarrow.from_numpy_dtype(expected.dtype)


def test_a_slice_and_an_empty_batch_are_fine(tiny_bert_folder):
    table = pyarrow.table({"text": pyarrow.array(TEXTS).dictionary_encode()})
    whole = encode_batch(table, "text", model=tiny_bert_folder)
    part = encode_batch(table.slice(3, 4), "text", model=tiny_bert_folder)
    np.testing.assert_allclose(vectors_of(part), vectors_of(whole)[3:7], atol=2e-6)
    assert encode_batch(table.slice(0, 0), "text", model=tiny_bert_folder).schema == whole.schema


def test_the_model_is_loaded_once(tiny_bert_folder):
    module._load_once.cache_clear()
    for _ in range(3):
        encode_batch(pyarrow.table({"text": ["rain"]}), "text", model=tiny_bert_folder)
    assert module._load_once.cache_info().misses == 1


def test_what_cannot_be_encoded_is_told(tiny_bert_folder):
    with pytest.raises(InputError, match="no column 'body', found 'text'"):
        encode_batch(pyarrow.table({"text": TEXTS}), "body", model=tiny_bert_folder)
    with pytest.raises(InputError, match="holds a NoneType, expected texts only"):
        encode_batch(pyarrow.table({"text": ["rain", None]}), "text", model=tiny_bert_folder)
    with pytest.raises(InputError, match="has a column 'text' already"):
        encode_batch(pyarrow.table({"text": TEXTS}), "text", model=tiny_bert_folder, into="text")
    with pytest.raises(UsageError):
        encode_batch(pyarrow.table({"text": TEXTS}), "text", model=tiny_bert_folder, dimensions=0)
