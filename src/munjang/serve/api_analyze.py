"""Munjang's own routes for a collection of texts: pairs, clusters, a map, keywords, topics.

The texts are sent along, or taken from a library with the vectors it has (`Collection`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from munjang.analyze.clusters import cluster
from munjang.analyze.keywords import extract_keywords, find_cluster_phrases
from munjang.analyze.layout import lay_out
from munjang.analyze.pairs import mine_pairs
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import Topic
from munjang.library.library import Library
from munjang.library.matrix import document_vector
from munjang.library.words import read_analysis
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts
from munjang.serve.prepare import prepare_texts
from munjang.serve.schema import OwnModel, options_in, takes_options
from munjang.text.dictionary import Dictionary
from munjang.text.tagging import Tagger, choose_tagger
from munjang.text.unicode import clean
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
    dictionary: Dictionary | None = None
    """The words of the library's user."""


async def collection_of(call: Call, body: CollectionRequest, model: SentenceEncoder | None = None) -> Collection:
    """Return the collection, or refuse one that is too large; texts are encoded by `model`, else by the one that the client asks for."""
    if (body.texts is None) == (body.library is None):
        raise Refusal(422, "expected either texts or library", field="texts")
    if body.texts is not None:
        model = model or call.encoder
        return Collection(body.texts, normalize(await encode_texts(call, body.texts, model)), model)
    name, most = body.library or "", call.service.settings.limits.max_analysed_texts
    call.key.check("read", name)
    return await call.service.in_thread(call.request_work, lambda: _documents(call.service.libraries.get(name), most))


async def encode_texts(call: Call, texts: list[str], model: SentenceEncoder | None = None) -> Vectors:
    """Return one vector per text, computed a few batches at a time so that others get their turn."""
    check_texts(call, texts, field="texts", limit=call.service.settings.limits.max_analysed_texts)
    chosen = model or call.encoder
    found = await call.service.in_thread(call.request_work, lambda: chosen.encode_with_report(texts), texts=len(texts))
    call.note(texts=len(texts), tokens=int(found.tokens.sum()), truncated=found.too_long)
    return found.vectors


async def check_short(call: Call, words: list[str], model: SentenceEncoder, *, field: str) -> None:
    """Refuse words that steer an analysis and are longer than the model reads; nothing in the answer could say that they were cut."""
    prepared = await call.service.in_text_thread(prepare_texts, model, words)
    if prepared.truncated:
        raise Refusal(413, f"{field} is longer than the {model.max_length:,} tokens that the model reads", field=field)


def word_tagger(call: Call, dictionary: Dictionary | None = None) -> Tagger:
    """Return what finds the nouns of texts, in keeping with how libraries split words; with a library's dictionary, or the server's."""
    settings = call.service.settings
    return choose_tagger("plain" if settings.analyser == "bigrams" else None, dictionary=dictionary or settings.dictionary)


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
    dictionary = read_analysis(library.store.settings().analyser).dictionary
    return Collection(texts, np.stack(vectors), library.encoder.model, ids, dictionary)


CLUSTERS = {"k": 1_000, "phrases": 50}
"""What the server lowers for clusters."""


class CollectionRequest(OwnModel):
    """Texts to analyse: as they are, or the documents of a library."""

    texts: list[str] | None = None
    library: str | None = None
    model: str | None = None
    """Which of the served models reads the texts; a library has its own."""


@takes_options(mine_pairs, most={"threshold": 1, "top": 100_000})
class PairsRequest(CollectionRequest):
    """Texts to find pairs in."""


@takes_options(cluster, find_cluster_phrases, most=CLUSTERS)
class ClustersRequest(CollectionRequest):
    """Texts to cluster."""


@takes_options(cluster, find_cluster_phrases, lay_out, most=CLUSTERS)
class MapRequest(CollectionRequest):
    """Texts to place on a plane, coloured by cluster."""


@takes_options(extract_keywords, most={"top": 100, "min_words": 10, "max_words": 10, "pool": 1_000, "seed_words": 100})
class KeywordsRequest(OwnModel):
    """Texts to extract keywords from."""

    texts: list[str]
    model: str | None = None


@takes_options(
    fit_topics,
    most={"topics": 1_000, "words": 100, "dimensions": 1_000, "labels": 100, "guides": 100},
    choices={"method": ("graph", "kmeans", "hdbscan"), "reduction": ("pca", "none")},
)
class TopicsRequest(CollectionRequest):
    """Texts whose topics are sought."""


class PairOut(OwnModel):
    """Texts a < b and their cosine."""

    a: int
    b: int
    score: float


class PairsOut(OwnModel):
    """Pairs, best first; identical texts; and the groups that both form."""

    pairs: list[PairOut]
    same: list[list[int]]
    groups: list[list[int]]
    cut: bool
    """There are more pairs than were asked for."""
    ids: list[str] | None
    """The documents' ids where a library was analysed."""
    texts: list[str]
    """The beginning of each text."""
    truncated: list[int]


class ClusterOut(OwnModel):
    """One cluster."""

    label: int
    size: int
    phrases: list[str]


class ClustersOut(OwnModel):
    """Each text's cluster, −1 for none; and the clusters, the largest first."""

    labels: list[int]
    clusters: list[ClusterOut]
    outliers: int
    silhouette: float | None
    ids: list[str] | None
    texts: list[str]
    truncated: list[int]


class MapOut(ClustersOut):
    """The clusters, and a position for each text: two numbers from 0 to 1."""

    places: list[list[float]]


class KeywordOut(OwnModel):
    """A phrase, its relevance, and its character offsets in the text."""

    text: str
    score: float
    places: list[list[int]]


class KeywordsOut(OwnModel):
    """Each text's keywords, in the order in which they were chosen."""

    keywords: list[list[KeywordOut]]
    texts: list[str]
    """The texts in NFC, which places count in."""


class WordOut(OwnModel):
    """A word and its weight."""

    word: str
    weight: float


class TopicOut(OwnModel):
    """One topic."""

    id: int
    name: str
    size: int
    words: list[WordOut]
    documents: list[int]
    """The most typical texts."""
    coherence: float


class TopicsOut(OwnModel):
    """Each text's topic, −1 for none; and the topics, the largest first."""

    labels: list[int]
    topics: list[TopicOut]
    outliers: int
    coherence: float
    diversity: float
    ids: list[str] | None
    texts: list[str]
    truncated: list[int]


SHOWN_CHARACTERS = 200
"""Of a text beside what was found in it."""


async def pairs(call: Call, body: PairsRequest) -> Reply:
    """Find texts of nearly the same meaning."""
    given = await collection_of(call, body)
    found = await call.service.in_analysis_thread(
        call.request_work, lambda: mine_pairs(given.vectors_ND, texts=given.texts, **options_in(body, mine_pairs))
    )
    answer = {"pairs": [pair._asdict() for pair in found.pairs], "same": found.same, "groups": found.groups(), "cut": found.cut}
    return _reply(call, given, answer)


async def clusters(call: Call, body: ClustersRequest) -> Reply:
    """Put texts into clusters, and name them."""
    given = await collection_of(call, body)
    return _reply(call, given, await call.service.in_analysis_thread(call.request_work, lambda: _clusters(call, given, body)))


async def plane(call: Call, body: MapRequest) -> Reply:
    """Place texts on a plane, and put them into clusters."""
    given = await collection_of(call, body)

    def work() -> dict[str, Any]:
        places_N2 = lay_out(given.vectors_ND, **options_in(body, lay_out))
        return {**_clusters(call, given, body), "places": places_N2}

    return _reply(call, given, await call.service.in_analysis_thread(call.request_work, work))


async def keywords(call: Call, body: KeywordsRequest) -> Reply:
    """Find the keywords of each text."""
    options = options_in(body, extract_keywords)
    if options["min_words"] > options["max_words"]:
        raise Refusal(422, "min_words is more than max_words", field="min_words")
    await check_short(call, [" ".join(options["seed_words"])], call.encoder, field="seed_words")
    vectors_ND = await encode_texts(call, body.texts)
    model = call.encoder.with_prompt(warn=False)

    def work() -> list[Any]:
        found = extract_keywords(body.texts, model, **options, vectors=vectors_ND, by=word_tagger(call))
        return [[asdict(one) for one in each] for each in found]

    found = await call.service.in_analysis_thread(call.request_work, work)
    return Reply({"keywords": found, "texts": [clean(text) for text in body.texts]}, headers=call.truncation_headers())


async def topics(call: Call, body: TopicsRequest) -> Reply:
    """Find the topics of a collection."""
    options = options_in(body, fit_topics)
    given = await collection_of(call, body)
    await check_short(call, options["labels"], given.model, field="labels")
    model = given.model.with_prompt(warn=False)

    def work() -> dict[str, Any]:
        found = fit_topics(given.texts, model, **options, vectors=given.vectors_ND, by=word_tagger(call, given.dictionary))
        return {
            "labels": found.labels,
            "topics": [_topic(each) for each in found.topics],
            "outliers": found.outliers,
            "coherence": found.coherence,
            "diversity": found.diversity,
        }

    return _reply(call, given, await call.service.in_analysis_thread(call.request_work, work))


def _clusters(call: Call, given: Collection, body: CollectionRequest) -> dict[str, Any]:
    found = cluster(given.vectors_ND, **options_in(body, cluster))
    by = word_tagger(call, given.dictionary)
    phrases = find_cluster_phrases(given.texts, found.labels_N.tolist(), **options_in(body, find_cluster_phrases), by=by)
    return {
        "labels": found.labels_N,
        "clusters": [{"label": label, "size": size, "phrases": phrases.get(label, ())} for label, size in found.sizes.items()],
        "outliers": found.outliers,
        "silhouette": found.silhouette,
    }


def _topic(topic: Topic) -> dict[str, Any]:
    return {
        "id": int(topic.id),
        "name": topic.name,
        "size": int(topic.size),
        "words": [{"word": word, "weight": float(weight)} for word, weight in topic.words],
        "documents": [int(row) for row in topic.documents],
        "coherence": float(topic.coherence),
    }


def _reply(call: Call, given: Collection, answer: dict[str, Any]) -> Reply:
    texts = [clean(text)[:SHOWN_CHARACTERS] for text in given.texts]
    return Reply({**answer, "ids": given.ids, "texts": texts, "truncated": call.seen.truncated}, headers=call.truncation_headers())


OPERATIONS = (
    Operation(
        "POST", "/api/pairs", "munjang", "Pairs of texts with nearly the same meaning.", pairs, PairsRequest, PairsOut, computes=True
    ),
    Operation("POST", "/api/clusters", "munjang", "Labelled clusters.", clusters, ClustersRequest, ClustersOut, computes=True),
    Operation("POST", "/api/map", "munjang", "A position for each text, and clusters.", plane, MapRequest, MapOut, computes=True),
    Operation("POST", "/api/keywords", "munjang", "Keywords of each text.", keywords, KeywordsRequest, KeywordsOut, computes=True),
    Operation("POST", "/api/topics", "munjang", "Topics of a collection.", topics, TopicsRequest, TopicsOut, computes=True),
)
