"""Token vectors: batched as `encode` is, the same numbers as text by text, and only the tokens that are wanted."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.errors import UsageError
from munjang.models.long_text import TruncationWarning
from munjang.models.sentence_encoder import SentenceEncoder

TEXTS = ["the rain in winter, and snow!", "cat", "", "the cat sat on the mat", "cat"]


@pytest.fixture(scope="module", params=["mean", "cls"])
def model(request, tiny_folder) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_folder("bert", pooling=(request.param,)))


def test_a_batch_gives_each_text_what_it_has_alone(model):
    for together, text in zip(model.encode_tokens(TEXTS), TEXTS, strict=True):
        [ids] = model.tokenizer.encode([text])
        assert together.ids == ids
        np.testing.assert_allclose(together.vectors, model.engine.layer_outputs(ids)[-1], atol=2e-5)


def test_one_pass_gives_the_sentence_vectors_too(model):
    vectors, shapes = model.encode_with_tokens(TEXTS, keep=lambda rows: rows.shape)
    np.testing.assert_allclose(vectors, model.encode(TEXTS), atol=2e-6)
    assert [shape[0] for shape in shapes] == model.count_tokens(TEXTS)


def test_special_prompt_and_punctuation_tokens_can_be_left_out(model):
    [whole] = model.encode_tokens(TEXTS[:1], prompt="read: ")
    [some] = model.encode_tokens(TEXTS[:1], prompt="read: ", skip=("special", "prompt", "punctuation"))
    assert [*some.tokens] == [token for token in some.tokens if token not in ("[CLS]", "[SEP]", ",", "!", "read", ":")]
    kept = [place for place, token in enumerate(whole.tokens) if token in some.tokens]
    np.testing.assert_array_equal(whole.vectors[kept[-len(some.tokens) :]], some.vectors)
    places = model.token_places(TEXTS[0], prompt="read: ", skip=("special", "prompt", "punctuation"))
    assert [TEXTS[0][start:stop] for start, stop in places] == [token.removeprefix("##") for token in some.tokens]
    lengths = np.linalg.norm(model.encode_tokens(TEXTS[:1], normalize=True)[0].vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)
    with pytest.raises(UsageError, match="skip holds 'stopwords'"):
        model.encode_tokens(TEXTS, skip=["stopwords"])


def test_a_stream_holds_a_block_and_warns_once(model):
    blocks = list(model.encode_tokens_stream(iter(TEXTS), block=2))
    assert [len(block) for block in blocks] == [2, 2, 1]
    with pytest.warns(TruncationWarning, match="2 of 3 texts"):
        list(model.encode_tokens_stream(["rain " * 500, "rain " * 600, "rain"], block=1))
    with pytest.warns(TruncationWarning, match="1 of 2 texts"):
        model.for_queries().encode_with_tokens(["rain " * 500, "rain"], keep=len)
    with pytest.raises(UsageError, match="block=0"):
        model.encode_tokens_stream(TEXTS, block=0)
