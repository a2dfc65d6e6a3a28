"""Laws of SentenceEncoder.encode: order, duplicates, batches, precision, long texts, and what it refuses."""

from __future__ import annotations

import tracemalloc
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import TEXTS

from munjang.engine.devices import CPU
from munjang.errors import TextError, UsageError
from munjang.models.long_text import TruncationWarning, split_windows
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import Encoder

BOUND = 2e-6
SHORT = [text for text in TEXTS if len(text) < 40]
LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = st.lists(st.sampled_from("the rain cat 비가 온다 눈이 sleeping ☃ 3".split()), max_size=9).map(" ".join)  # noqa: SIM905


@pytest.fixture(scope="module")
def model(tiny_bert_folder):
    return SentenceEncoder.load(tiny_bert_folder)


def test_it_is_an_encoder(model):
    assert isinstance(model, Encoder)
    assert model.dimension == 32
    assert model.normalized


@LAW
@given(st.lists(WORDS, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_texts_is_kept_and_changes_nothing(model, texts, random):
    order = list(range(len(texts)))
    random.shuffle(order)
    straight, shuffled = model.encode(texts), model.encode([texts[number] for number in order])
    assert np.abs(straight[order] - shuffled).max() <= BOUND


@LAW
@given(WORDS, st.lists(WORDS, max_size=60))
def test_a_vector_does_not_depend_on_its_batch(model, text, others):
    assert np.abs(model.encode(text) - model.encode([*others, text])[-1]).max() <= BOUND


@pytest.mark.parametrize(("family", "pooling"), [("bert", "mean_sqrt_len"), ("mpnet", "max"), ("roberta", "cls")])
def test_the_bound_holds_for_vectors_of_any_length(family, pooling, tiny_folder):
    model = SentenceEncoder.load(tiny_folder(family, pooling=(pooling,), modules=()))
    alone = np.stack([model.encode(text) for text in SHORT])
    lengths = np.linalg.norm(alone, axis=1, keepdims=True)
    assert (np.abs(model.encode(SHORT) - alone) <= BOUND * lengths).all()


@LAW
@given(st.lists(WORDS, min_size=1, max_size=10), st.integers(2, 4))
def test_equal_texts_have_equal_bits(model, texts, times):
    vectors = model.encode(texts * times).reshape(times, len(texts), -1)
    assert all(np.array_equal(vectors[0], again) for again in vectors)


@LAW
@given(st.text(max_size=60))
def test_any_text_has_a_finite_unit_vector(model, text):
    vector = model.encode_with_report([text]).vectors[0]
    assert np.isfinite(vector).all()
    assert abs(np.linalg.norm(vector) - 1) < 1e-5


@LAW
@given(st.text("가각한글비온다àéñ ab", max_size=20))
def test_composed_and_decomposed_texts_have_equal_bits(model, text):
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert np.array_equal(model.encode_with_report([composed]).vectors, model.encode_with_report([decomposed]).vectors)


def test_one_text_gives_one_vector_and_many_give_rows(model):
    assert model.encode("rain").shape == (32,)
    assert model.encode(["rain"]).shape == (1, 32)
    assert model.encode(["rain", "snow"]).dtype == np.float32
    assert np.array_equal(model.encode("rain"), model.encode(["rain"])[0])


@pytest.mark.parametrize("empty", [[], (), iter([]), {}.keys()], ids=lambda empty: type(empty).__name__)
def test_no_texts_give_no_rows(empty, model):
    assert model.encode(empty).shape == (0, 32)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "uint8", "binary", "ubinary"])
def test_no_texts_give_no_rows_in_any_precision(precision, model):
    assert model.encode([], precision=precision).shape == model.encode(["a"], precision=precision)[:0].shape
    assert model.encode([], precision=precision).dtype == model.encode(["a"], precision=precision).dtype
    assert model.encode([], dimensions=8).shape == (0, 8)


def test_iterables_of_every_kind_are_taken(model):
    expected = model.encode(SHORT)
    for texts in (tuple(SHORT), iter(SHORT), (text for text in SHORT), dict.fromkeys(SHORT).keys(), np.array(SHORT)):
        assert np.array_equal(model.encode(texts), expected)


def test_an_iterator_longer_than_a_block_is_joined(model, monkeypatch):
    import munjang.models.sentence_encoder as room

    monkeypatch.setattr(room, "LIMITS", replace(room.LIMITS, stream_texts=3))
    report = model.encode_with_report(iter(SHORT * 3 + ["rain " * 50]))
    assert np.abs(report.vectors[: len(SHORT)] - model.encode(SHORT)).max() <= BOUND
    assert report.too_long == [3 * len(SHORT)]
    assert len(report.tokens) == 3 * len(SHORT) + 1


def test_a_stream_yields_blocks_in_order_and_reads_no_further_than_it_must(model):
    taken = []

    def texts():
        for number in range(100):
            taken.append(number)
            yield f"rain {number}"

    stream = model.encode_stream(texts(), block=10)
    assert next(stream).shape == (10, 32)
    assert len(taken) == 10
    rest = np.concatenate(list(stream))
    assert np.abs(rest - model.encode([f"rain {number}" for number in range(10, 100)])).max() <= BOUND


DTYPES = {"float32": np.float32, "float16": np.float16, "int8": np.int8, "uint8": np.uint8, "binary": np.int8, "ubinary": np.uint8}


@pytest.mark.parametrize(("precision", "dtype"), DTYPES.items())
def test_precisions_have_their_types_and_widths(precision, dtype, model):
    width = 4 if "binary" in precision else 32
    found = model.encode(SHORT, precision=precision)
    assert found.dtype == dtype
    assert found.shape == (len(SHORT), width)
    assert np.array_equal(model.encode(SHORT[0], precision=precision), model.encode([SHORT[0]], precision=precision)[0])


def test_fewer_dimensions_are_the_first_ones(model):
    full = model.encode(SHORT)
    assert np.array_equal(model.encode(SHORT, dimensions=7), full[:, :7])
    scaled = model.encode(SHORT, dimensions=7, normalize=True)
    assert np.abs(np.linalg.norm(scaled, axis=1) - 1).max() < 1e-6
    assert np.abs(scaled - full[:, :7] / np.linalg.norm(full[:, :7], axis=1, keepdims=True)).max() < 1e-6


@pytest.mark.parametrize("dimensions", [0, -1, 33])
def test_impossible_dimensions_are_refused(dimensions, model):
    with pytest.raises(UsageError, match="expected 1 to 32"):
        model.encode("a", dimensions=dimensions)


def test_long_texts_are_cut_with_one_warning(model):
    with pytest.warns(TruncationWarning, match="2 of 4 texts are longer than 24 tokens") as caught:
        vectors = model.encode(["rain " * 100, "rain", "snow " * 99, "snow"])
    assert len(caught) == 1
    assert np.abs(vectors[0] - model.encode("rain " * 22)).max() <= BOUND


def test_short_texts_never_warn(model):
    model.encode(["rain " * 22, "snow"])  # warnings are errors here


def test_long_texts_are_refused_when_asked(model):
    with pytest.raises(TextError, match="text 1 has 102 tokens, the model's limit is 24"):
        model.encode(["rain", "rain " * 100], long_text="error")
    assert model.encode(["rain " * 22], long_text="error").shape == (1, 32)


def test_a_windowed_vector_is_the_mean_of_its_windows(model):
    text = " ".join(["rain", "cat", "비가", "dog"] * 15)
    plain = model.tokenizer.encode_plain([text])[0]
    parts = [model.tokenizer.wrap(part) for part in split_windows(plain, size=22, stride=17)]
    vectors = np.concatenate([model.engine.vectors([part]) for part in parts])
    mean = np.average(vectors, axis=0, weights=[len(part) for part in parts])
    found = model.encode(["snow", text, "rain"], long_text="window")
    assert np.abs(found[1] - mean / np.linalg.norm(mean)).max() <= BOUND
    assert np.abs(found[[0, 2]] - model.encode(["snow", "rain"])).max() <= BOUND


def test_the_end_of_a_windowed_text_counts(model):
    one, two = "rain " * 60 + "cat", "rain " * 60 + "snow"
    cut = model.encode_with_report([one, two]).vectors
    assert np.abs(cut[0] - cut[1]).max() <= BOUND
    read = model.encode([one, two], long_text="window")
    assert np.abs(read[0] - read[1]).max() > 1e-3


def test_a_report_names_what_was_cut(model):
    report = model.encode_with_report(["rain", "rain " * 30, "", "rain " * 30, "snow " * 22])
    assert report.too_long == [1, 3]
    assert report.tokens.tolist() == [3, 32, 2, 32, 24]
    assert report.vectors.shape == (5, 32)


def test_a_lower_limit_can_be_asked_for(tiny_bert_folder):
    short = SentenceEncoder.load(tiny_bert_folder, max_length=8)
    assert short.max_length == 8
    assert SentenceEncoder.load(tiny_bert_folder, max_length=800).max_length == 24
    assert short.encode_with_report(["rain " * 7]).too_long == [0]
    with pytest.raises(UsageError, match="leaves no room"):
        SentenceEncoder.load(tiny_bert_folder, max_length=2)


@pytest.mark.parametrize(
    "bad", [None, 5, b"rain", [b"rain"], [None], ["rain", None], [["rain"]], ["rain", 5], [("a", "b")], bytearray(b"a")], ids=repr
)
def test_what_is_not_text_is_refused(bad, model):
    for encode in (model.encode, model.encode_with_report, model.encode_tokens, lambda texts: list(model.encode_stream(texts))):
        with pytest.raises((UsageError, TextError), match="expected"):
            encode(bad)


def test_one_text_where_several_are_expected_is_refused(model):
    for encode in (model.encode_with_report, model.encode_tokens, model.encode_stream):
        with pytest.raises(UsageError, match="put it in a list"):
            encode("rain")


def test_unknown_options_are_refused(model, tiny_bert_folder):
    for options in ({"long_text": "cut"}, {"precision": "int4"}, {"prompt_name": "nobody"}):
        with pytest.raises(UsageError):
            model.encode("a", **options)
    with pytest.raises(UsageError, match="block"):
        model.encode_stream(["a"], block=0)
    for options in ({"compute": "int4"}, {"threads": 0}):
        with pytest.raises(UsageError):
            SentenceEncoder.load(tiny_bert_folder, **options)


def test_int8_keeps_the_laws(tiny_bert_folder):
    model = SentenceEncoder.load(tiny_bert_folder, compute="int8")
    exact = SentenceEncoder.load(tiny_bert_folder).encode(SHORT)
    assert (model.encode(SHORT) * exact).sum(axis=1).min() > 0.97
    assert model.encode("rain").shape == (32,)


def test_the_fingerprint_follows_what_decides_a_vector(tiny_folder, tiny_bert_folder):
    load = SentenceEncoder.load
    base = load(tiny_bert_folder).fingerprint
    assert load(tiny_bert_folder).fingerprint == base
    others = [
        load(tiny_bert_folder, compute="int8"),
        load(tiny_bert_folder, max_length=9),
        load(tiny_bert_folder, pooling="cls"),
        load(tiny_folder("roberta")),
        load(tiny_folder("bert", settings='{"truncate_dim": 8}')),
        load(tiny_folder("bert", settings='{"prompts": {"q": "cat "}, "default_prompt_name": "q"}')),
    ]
    assert len({base, *(other.fingerprint for other in others)}) == len(others) + 1


class Zeros:
    """An engine that costs nothing."""

    placement = CPU
    dimension = hidden_size = 4
    layers = heads = first_position = 0
    vocabulary_size = 10**6
    max_tokens = None

    def vectors_of_batches(self, batches, *, hidden_prefix=0):
        return (np.zeros((len(batch), 4), np.float32) for batch in batches)


def peak_memory(model: SentenceEncoder, count: int) -> int:
    """Return the most bytes that are held while so many texts come from a generator."""
    stub = SentenceEncoder(model.folder, model.tokenizer, Zeros(), name="stub", compute="float32", max_length=None)
    tracemalloc.start()
    try:
        blocks = stub.encode_stream(f"rain {number % 5000}" for number in range(count))
        assert sum(len(block) for block in blocks) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_four_times_as_many_texts_from_a_generator_take_the_same_memory(model):
    assert peak_memory(model, 80_000) < 1.2 * peak_memory(model, 20_000)


@pytest.mark.slow
def test_a_million_texts_from_a_generator_take_bounded_memory(model):
    assert peak_memory(model, 1_000_000) < 64 * 2**20


def test_token_vectors_of_a_cut_text_are_told(tiny_bert_folder) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    with pytest.warns(TruncationWarning, match=r"1 of 2 texts is longer than \d+ tokens"):
        long, short = model.encode_tokens(["rain " * 1_000, "rain"])
    assert (len(long.ids), len(short.ids)) == (model.max_length, len(model.encode_tokens(["rain"])[0].ids))
