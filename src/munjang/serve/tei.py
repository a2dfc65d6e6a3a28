"""The routes of text-embeddings-inference that turn texts into vectors, and what a server of that kind says about itself."""

from __future__ import annotations

from munjang.engine.modules import PoolingModule
from munjang.limits import LIMITS
from munjang.serve import tei_scores, tei_tokens
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.inputs import check_texts, cosines, listed, shaped, vectors_of
from munjang.serve.prepare import Side, prepare_as_written
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.tei import (
    EmbedAllRequest,
    EmbedRequest,
    EmbedSparseRequest,
    MainRequest,
    SimilarityInputs,
    SimilarityParameters,
    SparseValue,
    TeiInfo,
    TeiSimilarityRequest,
)
from munjang.serve.service import THREADS
from munjang.serve.tei_answer import computed


async def embed(call: Call, body: EmbedRequest | MainRequest) -> Reply:
    """Return a list of vectors, also for one text."""
    assert not isinstance(body.inputs, SimilarityInputs)
    vectors = await vectors_of(
        call,
        body.inputs,
        field="inputs",
        prompt_name=body.prompt_name,
        side=_side(body.truncation_direction),
        cut=body.truncate is not False,
    )
    return computed(call, shaped(call, vectors, dimensions=body.dimensions, normalize=body.normalize), listed(body.inputs))


async def embed_all(call: Call, body: EmbedAllRequest) -> Reply:
    """Return the vector of every token of every text."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_texts(call, texts, field="inputs", limit=call.service.settings.limits.max_token_texts)
    model = call.service.encoder
    if body.prompt_name is not None and body.prompt_name not in model.prompts:
        raise Refusal(422, "prompt_name: the model has no such prompt", field="prompt_name")
    prompt = model.prompts.get(body.prompt_name or "", "")
    whole, cut = [prompt + text for text in texts], body.truncate is not False
    prepared = await call.service.in_text_thread(lambda: prepare_as_written(model, whole, cut=cut))
    found = await call.service.in_thread(call.errand, lambda: [model.engine.layer_outputs(ids)[-1] for ids in prepared.ids])
    call.note(texts=len(texts), tokens=prepared.tokens, truncated=prepared.truncated)
    return computed(call, found, texts)


async def embed_sparse(call: Call, body: EmbedSparseRequest) -> Reply:
    """Refuse, as text-embeddings-inference does for a model without a sparse head: there is none that Munjang reads."""
    check_texts(call, listed(body.inputs), field="inputs")
    raise Refusal(424, "the model is not an embedding model with SPLADE pooling, so it has no sparse vectors\n  use /embed")


async def similarity(call: Call, body: TeiSimilarityRequest) -> Reply:
    """Return the cosine of one sentence with each of the others."""
    return await _similarity(call, body.inputs, body.parameters or SimilarityParameters())


async def main(call: Call, body: MainRequest) -> Reply:
    """Do what Hugging Face's clients mean when they post to the server itself."""
    if isinstance(body.inputs, SimilarityInputs):
        return await _similarity(call, body.inputs, body.parameters or SimilarityParameters())
    return await embed(call, body)


async def info(call: Call, _body: None) -> Reply:
    """Say what is served, and the limits."""
    from munjang import __version__

    service, limits = call.service, call.service.settings.limits
    model = service.encoder
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
            "reranker": service.reranker.name if service.has_reranker else None,
        }
    )


async def health(_call: Call, _body: None) -> Reply:
    """Say that the server is up."""
    return Reply(b"", media="text/plain; charset=utf-8")


async def _similarity(call: Call, inputs: SimilarityInputs, parameters: SimilarityParameters) -> Reply:
    check_texts(call, inputs.sentences, field="sentences", limit=call.service.settings.limits.max_texts - 1)
    texts = [inputs.source_sentence, *inputs.sentences]
    vectors = await vectors_of(
        call,
        texts,
        field="inputs",
        prompt_name=parameters.prompt_name,
        side=_side(parameters.truncation_direction),
        cut=parameters.truncate is not False,
    )
    return computed(call, cosines(vectors[:1], vectors[1:])[0], texts)


def _side(written: str) -> Side:
    return "left" if written.lower() == "left" else "right"


_VECTORS = list[list[float]]

OPERATIONS = (
    Operation("POST", "/embed", "tei", "Texts to vectors.", embed, EmbedRequest, _VECTORS, computes=True),
    Operation("POST", "/embed_all", "tei", "The vectors of all tokens.", embed_all, EmbedAllRequest, list[_VECTORS], computes=True),
    Operation(
        "POST",
        "/embed_sparse",
        "tei",
        "Sparse vectors; refused with 424, for no model here has them.",
        embed_sparse,
        EmbedSparseRequest,
        list[list[SparseValue]],
    ),
    Operation("POST", "/similarity", "tei", "One sentence against many.", similarity, TeiSimilarityRequest, list[float], computes=True),
    Operation("POST", "/", "tei", "What Hugging Face's clients call.", main, MainRequest, _VECTORS | list[float], computes=True),
    *tei_scores.OPERATIONS,
    *tei_tokens.OPERATIONS,
    Operation("GET", "/info", "tei", "What is served, and the limits.", info, None, TeiInfo),
    Operation("GET", "/health", "tei", "Whether the server is up.", health, open=True),
    Operation("GET", "/ping", "tei", "Whether the server is up.", health, open=True),
)
