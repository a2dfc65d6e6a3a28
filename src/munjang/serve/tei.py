"""The routes of text-embeddings-inference: vectors, scores, tokens, and what a server of that kind says about itself.

A cross-encoder answers /rerank and /predict; a pair classifier, where one is served, /predict in its stead. Clients of Cohere's dialect
call /rerank too, as infinity has it: their bodies hold `documents` where these hold `texts`, and are answered in infinity's shape.

Statuses are those of text-embeddings-inference itself: 422 for what cannot be read as it is (a text that is too long where it may not be
cut, an unknown prompt), 413 for too many texts, 400 for none, 424 where no model can do it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence, Sized
from typing import Any

from munjang.engine.modules import PoolingModule
from munjang.limits import LIMITS
from munjang.models.batch_encoder import run_tokens
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve import cohere
from munjang.serve.api_classify import label_texts
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts, cosines, list_inputs, shape_vectors, vectors_of
from munjang.serve.prepare import Cutting, prepare_as_written
from munjang.serve.scoring import predict_labels, score_pairs_in_turns
from munjang.serve.service import THREADS
from munjang.serve.tei_schema import (
    DecodeRequest,
    EmbedAllRequest,
    EmbedRequest,
    EmbedSparseRequest,
    MainRequest,
    Prediction,
    PredictRequest,
    Rank,
    SimilarityInputs,
    SimilarityParameters,
    SimpleToken,
    SparseValue,
    TeiInfo,
    TeiRerankRequest,
    TeiSimilarityRequest,
    TokenizeRequest,
)
from munjang.text.tokenizer import SHIELD
from munjang.text.unicode import break_long_words, clean
from munjang.wording import count


async def embed(call: Call, body: EmbedRequest | MainRequest) -> Reply:
    """Return a list of vectors, also for one text."""
    assert not isinstance(body.inputs, SimilarityInputs)
    vectors = await vectors_of(call, body.inputs, _cutting(body), field="inputs", prompt_name=body.prompt_name)
    return reply_with_cost(
        call, shape_vectors(call, vectors, dimensions=body.dimensions, normalize=body.normalize), list_inputs(body.inputs)
    )


async def embed_all(call: Call, body: EmbedAllRequest) -> Reply:
    """Return the vector of every token of every text."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_texts(call, texts, field="inputs", limit=call.service.settings.limits.max_token_texts)
    model = call.encoder.way(body.prompt_name)
    if body.prompt_name is not None and body.prompt_name not in model.prompts:
        raise Refusal(422, "prompt_name: the model has no such prompt", field="prompt_name")
    prompt = model.prompts.get(body.prompt_name or "", "")
    whole, cutting = [prompt + text for text in texts], Cutting(allowed=body.truncate is not False)
    prepared = await call.service.in_text_thread(lambda: prepare_as_written(model, whole, cutting))
    rows = await call.service.in_thread(
        call.request_work, lambda: {place: rows for place, _, rows in run_tokens(model.engine, prepared.ids)}
    )
    found: list[Any] = [rows.get(place, []) for place in range(len(prepared.ids))]
    call.note(texts=len(texts), tokens=prepared.tokens, truncated=prepared.truncated)
    return reply_with_cost(call, found, texts)


async def embed_sparse(call: Call, body: EmbedSparseRequest) -> Reply:
    """Refuse, as text-embeddings-inference does for a model without a sparse head: there is none that Munjang reads."""
    check_texts(call, list_inputs(body.inputs), field="inputs")
    raise Refusal(424, "the model is not an embedding model with SPLADE pooling, so it has no sparse vectors\n  use /embed")


async def similarity(call: Call, body: TeiSimilarityRequest) -> Reply:
    """Return the cosine of one sentence with each of the others."""
    return await _similarity(call, body.inputs, body.parameters or SimilarityParameters())


async def main(call: Call, body: MainRequest) -> Reply:
    """Do what Hugging Face's clients mean when they post to the server itself."""
    if isinstance(body.inputs, SimilarityInputs):
        return await _similarity(call, body.inputs, body.parameters or SimilarityParameters())
    return await embed(call, body)


async def rerank(call: Call, body: TeiRerankRequest) -> Reply:
    """Order texts by how well they answer a query."""
    check_texts(call, body.texts, field="texts")
    pairs = [(body.query, text) for text in body.texts]
    scores = await score_pairs_in_turns(call, pairs, score="logits" if body.raw_scores else "sigmoid")
    _refuse_cut(call, body.truncate, call.reranker.max_length)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    ranks = [{"index": index, "score": scores[index], **({"text": body.texts[index]} if body.return_text else {})} for index in order]
    return reply_with_cost(call, ranks, (text for pair in pairs for text in pair))


async def predict(call: Call, body: PredictRequest) -> Reply:
    """Label a text or a pair, or a list of them; texts alone by the served classifier, if there is one, pairs by the cross-encoder."""
    single = isinstance(body.inputs, str) or (bool(body.inputs) and isinstance(body.inputs[0], str))
    given = [[body.inputs] if isinstance(body.inputs, str) else body.inputs] if single else body.inputs
    groups: list[list[str]] = given  # type: ignore[assignment]
    check_texts(call, groups, field="inputs")
    wrong = next((number for number, group in enumerate(groups) if len(group) not in (1, 2)), None)
    if wrong is not None:
        raise Refusal(422, f"inputs: entry {wrong} has {count(len(groups[wrong]), 'text')}, expected one text or a pair", field="inputs")
    if call.service.classifiers and all(len(group) == 1 for group in groups):
        rows = await label_texts(call, [group[0] for group in groups], raw=body.raw_scores, cut=body.truncate is not False)
    else:
        rows = await predict_labels(call, groups, raw=body.raw_scores)
        _refuse_cut(call, body.truncate, call.service.find_labeller().max_length)
    return reply_with_cost(call, rows[0] if single else rows, (text for group in groups for text in group))


async def tokenize(call: Call, body: TokenizeRequest) -> Reply:
    """Cut texts into tokens; start and stop count characters of the text in NFC."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_texts(call, texts, field="inputs")
    characters, most = sum(map(len, texts)), call.service.settings.limits.max_tokenized_characters
    if characters > most:
        raise Refusal(413, f"inputs hold {count(characters, 'character')}, the limit of this route is {most:,}", field="inputs")
    model = call.encoder.way(body.prompt_name)
    if body.prompt_name is not None and body.prompt_name not in model.prompts:
        raise Refusal(422, "prompt_name: the model has no such prompt", field="prompt_name")
    prompt = model.prompts.get(body.prompt_name or "", "")
    found = await call.service.in_text_thread(lambda: [_tokens(model, prompt + text, special=body.add_special_tokens) for text in texts])
    call.note(texts=len(texts), tokens=sum(map(len, found)))
    return Reply(found)


async def decode(call: Call, body: DecodeRequest) -> Reply:
    """Turn token ids back into texts."""
    arrays: list[list[int]] = [body.ids] if body.ids and isinstance(body.ids[0], int) else body.ids  # type: ignore[assignment]
    check_texts(call, arrays, field="ids")
    highest = call.encoder.engine.vocabulary_size
    if any(not 0 <= id < highest for array in arrays for id in array):
        raise Refusal(422, f"ids: the model's ids are 0 to {highest - 1:,}", field="ids")
    model = call.encoder
    found = await call.service.in_text_thread(lambda: [_decode(model, array, skip=body.skip_special_tokens) for array in arrays])
    return Reply(found)


async def info(call: Call, _body: None) -> Reply:
    """Say what is served, and the limits."""
    from munjang import __version__

    service, limits = call.service, call.service.settings.limits
    model = call.encoder
    pooling = next((module.modes for module in model.folder.modules if isinstance(module, PoolingModule)), ("mean",))
    return Reply(
        {
            "model_id": model.name,
            "model_sha": model.fingerprint[:40],
            "model_dtype": model.compute,
            "served_model_name": model.name,
            "model_type": {"embedding": {"pooling": "+".join(pooling)}},
            "max_concurrent_requests": limits.max_connections,
            "max_input_length": model.max_length,
            "max_batch_tokens": LIMITS.batch_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": limits.max_texts,
            "auto_truncate": True,
            "tokenization_workers": THREADS,
            "version": __version__,
            "sha": None,
            "docker_label": None,
            "dimension": model.dimension,
            "reranker": service.rerankers[0].name if service.rerankers else None,
        }
    )


async def health(_call: Call, _body: None) -> Reply:
    """Say that the server is up."""
    return Reply(b"", media="text/plain; charset=utf-8")


def reply_with_cost(call: Call, content: Any, read: Iterable[Sized]) -> Reply:
    """Return the answer with `x-compute-type`, `x-compute-time`, `x-compute-characters`, `x-compute-tokens` and `x-total-time`.

    Times are whole milliseconds since the request's head came in; both are the same, as in text-embeddings-inference. `read` are the texts
    as often as the model read them; an array of token ids counts its ids. Tokens are those that were computed, without what was cut off.
    """
    milliseconds = str(int((time.perf_counter() - call.start) * 1000))
    headers = {
        "x-compute-type": "cpu" if call.service.encoder.device in ("cpu", "openvino") else "gpu",
        "x-compute-time": milliseconds,
        "x-compute-characters": str(sum(map(len, read))),
        "x-compute-tokens": str(call.request_work.tokens),
        "x-total-time": milliseconds,
    }
    return Reply(content, headers=headers | call.truncation_headers())


async def _similarity(call: Call, inputs: SimilarityInputs, parameters: SimilarityParameters) -> Reply:
    check_texts(call, inputs.sentences, field="sentences", limit=call.service.settings.limits.max_texts - 1)
    texts = [inputs.source_sentence, *inputs.sentences]
    vectors = await vectors_of(call, texts, _cutting(parameters), field="inputs", prompt_name=parameters.prompt_name)
    return reply_with_cost(call, cosines(vectors[:1], vectors[1:])[0], texts)


def _cutting(asked: EmbedRequest | MainRequest | SimilarityParameters) -> Cutting:
    return Cutting("left" if asked.truncation_direction.lower() == "left" else "right", asked.truncate is not False)


def _refuse_cut(call: Call, truncate: bool | None, limit: int | None) -> None:
    if truncate is False and call.seen.truncated:
        raise Refusal(422, f"text {call.seen.truncated[0]} and the query have more than {limit:,} tokens together, the model's limit")


def _tokens(model: SentenceEncoder, text: str, *, special: bool) -> list[dict[str, Any]]:
    seen = model.tokenizer.encode_with_offsets(text)
    characters = break_long_words(clean(text))
    found = []
    for id, token, (start, stop), is_special in zip(seen.ids, seen.tokens, seen.offsets, seen.special_mask, strict=True):
        if is_special and special:
            found.append({"id": id, "text": token, "special": True, "start": None, "stop": None})
        elif not is_special:
            found.append({"id": id, "text": characters[start:stop], "special": False, "start": start, "stop": stop})
    return found


def _decode(model: SentenceEncoder, ids: Sequence[int], *, skip: bool) -> str:
    """Let the tokenizer's own decoder join the tokens; special tokens come back under their names."""
    tokenizer = model.tokenizer
    kept = [id for id in ids if not (skip and id in tokenizer.special_ids)]
    text: str = tokenizer._inner.decode(kept, skip_special_tokens=False)
    return text.replace(SHIELD, "")


def _is_infinitys(value: Any) -> bool:
    return isinstance(value, dict) and "documents" in value and "texts" not in value


_VECTORS = list[list[float]]

OPERATIONS = (
    Operation("POST", "/embed", "tei", "Encode texts.", embed, EmbedRequest, _VECTORS, computes=True),
    Operation("POST", "/embed_all", "tei", "The vectors of all tokens.", embed_all, EmbedAllRequest, list[_VECTORS], computes=True),
    Operation(
        "POST",
        "/embed_sparse",
        "tei",
        "Sparse vectors; always 424, since no model here has them.",
        embed_sparse,
        EmbedSparseRequest,
        list[list[SparseValue]],
    ),
    Operation("POST", "/similarity", "tei", "One sentence against many.", similarity, TeiSimilarityRequest, list[float], computes=True),
    Operation("POST", "/", "tei", "What Hugging Face's clients call.", main, MainRequest, _VECTORS | list[float], computes=True),
    Operation(
        "POST",
        "/rerank",
        "tei",
        "Rank texts for a query; a body with documents is infinity's.",
        rerank,
        TeiRerankRequest,
        list[Rank],
        computes=True,
        other=cohere.INFINITY_RERANK,
        is_others=_is_infinitys,
    ),
    Operation(
        "POST",
        "/predict",
        "tei",
        "Label texts or pairs.",
        predict,
        PredictRequest,
        list[Prediction] | list[list[Prediction]],
        computes=True,
    ),
    Operation("POST", "/tokenize", "tei", "Tokenize texts.", tokenize, TokenizeRequest, list[list[SimpleToken]]),
    Operation("POST", "/decode", "tei", "Decode token ids.", decode, DecodeRequest, list[str]),
    Operation("GET", "/info", "tei", "The served model and the limits.", info, None, TeiInfo),
    Operation("GET", "/health", "tei", "Whether the server is up.", health, open=True),
    Operation("GET", "/ping", "tei", "Whether the server is up.", health, open=True),
)
