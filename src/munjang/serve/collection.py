"""What a client wants analysed → texts and their vectors: sent along, or taken from a library with the vectors it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.library.library import Library
from munjang.library.matrix import document_vector
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.call import Call
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts
from munjang.serve.prepare import prepare_texts
from munjang.serve.schemas.collection import CollectionRequest
from munjang.text.tagging import Tagger, choose_tagger
from munjang.types import Vectors
from munjang.vectors.similarity import normalize
from munjang.wording import count


@dataclass(frozen=True, eq=False)
class Collection:
    """Texts and unit vectors."""

    texts: list[str]
    vectors_ND: Vectors
    model: SentenceEncoder
    """What made the vectors."""
    ids: list[str] | None = None


async def collection_of(call: Call, body: CollectionRequest) -> Collection:
    """Return the collection, or refuse one that is too large."""
    if (body.texts is None) == (body.library is None):
        raise Refusal(422, "expected either texts or library", field="texts")
    if body.texts is not None:
        return Collection(body.texts, normalize(await encoded_texts(call, body.texts)), call.encoder)
    name, most = body.library or "", call.service.settings.limits.max_analysed_texts
    call.key.check("read", name)
    return await call.service.in_thread(call.errand, lambda: _documents(call.service.libraries.get(name), most))


async def encoded_texts(call: Call, texts: list[str]) -> Vectors:
    """Return one vector per text, computed a few batches at a time so that others get their turn."""
    check_texts(call, texts, field="texts", limit=call.service.settings.limits.max_analysed_texts)
    model = call.encoder
    found = await call.service.in_thread(call.errand, lambda: model.encode_with_report(texts), texts=len(texts))
    call.note(texts=len(texts), tokens=int(found.tokens.sum()), truncated=found.too_long)
    return found.vectors


async def check_short(call: Call, words: list[str], model: SentenceEncoder, *, field: str) -> None:
    """Refuse words that steer an analysis and are longer than the model reads; nothing in the answer could say that they were cut."""
    prepared = await call.service.in_text_thread(prepare_texts, model, words)
    if prepared.truncated:
        raise Refusal(413, f"{field} is longer than the {model.max_length:,} tokens that the model reads", field=field)


def word_tagger(call: Call) -> Tagger:
    """Return what finds the nouns of texts, in keeping with how libraries split words."""
    return choose_tagger("plain" if call.service.settings.analyser == "bigrams" else None)


def _documents(library: Library, most: int) -> Collection:
    """Return a library's documents with a vector for each."""
    documents = library.info().documents
    if documents > most:
        raise Refusal(413, f"the library holds {count(documents, 'document')}, the limit of an analysis is {most:,}", field="library")
    ids, texts, vectors = [], [], []
    for block in library.store.entries():
        for entry in block:
            ids.append(entry.document.id)
            texts.append(entry.document.text)
            vectors.append(document_vector(entry.vectors_PD, entry.lengths_P))
    if not texts:
        raise Refusal(422, "the library is empty", field="library")
    assert isinstance(library.encoder, PromptedEncoder)  # as every library of a server
    return Collection(texts, np.stack(vectors), library.encoder.model, ids)
