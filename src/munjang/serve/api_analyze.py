"""Munjang's own routes for a collection of texts: pairs, clusters, a map, keywords, topics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from munjang.analyze.cluster_names import cluster_phrases
from munjang.analyze.clusters import ClusterOptions, cluster
from munjang.analyze.keywords import KeywordOptions, extract_keywords
from munjang.analyze.layout import lay_out
from munjang.analyze.pairs import mine
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import Topic
from munjang.analyze.topics.settings import TopicSettings
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.collection import Collection, check_short, collection_of, encoded_texts, word_tagger
from munjang.serve.libraries import Prompted
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.collection import (
    ClustersOut,
    ClustersRequest,
    KeywordsOut,
    KeywordsRequest,
    MapOut,
    MapRequest,
    PairsOut,
    PairsRequest,
    TopicsOut,
    TopicsRequest,
)
from munjang.text.unicode import clean

SHOWN_CHARACTERS = 200
"""Of a text beside what was found in it."""


async def pairs(call: Call, body: PairsRequest) -> Reply:
    """Find texts of nearly the same meaning."""
    given = await collection_of(call, body)
    found = await call.service.in_analysis_thread(
        call.errand,
        lambda: mine(
            given.vectors_ND,
            texts=given.texts,
            threshold=body.threshold,
            top=body.top,
            max_overlap=body.max_overlap,
            numbers=body.numbers,
        ),
    )
    answer = {"pairs": [pair._asdict() for pair in found.pairs], "same": found.same, "groups": found.groups(), "cut": found.cut}
    return _reply(call, given, answer)


async def clusters(call: Call, body: ClustersRequest) -> Reply:
    """Put texts into clusters, and name them."""
    given = await collection_of(call, body)
    return _reply(call, given, await call.service.in_analysis_thread(call.errand, lambda: _clusters(call, given, body)))


async def plane(call: Call, body: MapRequest) -> Reply:
    """Place texts on a plane, and put them into clusters."""
    given = await collection_of(call, body)

    def work() -> dict[str, Any]:
        places_N2 = lay_out(given.vectors_ND, method=body.layout, seed=body.seed)
        return {**_clusters(call, given, body), "places": places_N2}

    return _reply(call, given, await call.service.in_analysis_thread(call.errand, work))


async def keywords(call: Call, body: KeywordsRequest) -> Reply:
    """Find the keywords of each text."""
    if body.min_words > body.max_words:
        raise Refusal(422, "min_words is more than max_words", field="min_words")
    await check_short(call, [" ".join(body.seed_words)], field="seed_words")
    vectors_ND = await encoded_texts(call, body.texts)
    options = KeywordOptions(
        top=body.top,
        words=(body.min_words, body.max_words),
        choice=body.choice,
        diversity=body.diversity,
        seed_words=tuple(body.seed_words),
        min_frequency=body.min_frequency,
    )
    model = Prompted(call.service.encoder, ())

    def work() -> list[Any]:
        found = extract_keywords(body.texts, model, options=options, vectors=vectors_ND, by=word_tagger(call))
        return [[asdict(one) for one in each] for each in found]

    found = await call.service.in_analysis_thread(call.errand, work)
    return Reply({"keywords": found, "texts": [clean(text) for text in body.texts]}, headers=call.truncation_headers())


async def topics(call: Call, body: TopicsRequest) -> Reply:
    """Find the topics of a collection."""
    await check_short(call, body.labels, field="labels")
    given = await collection_of(call, body)
    settings = TopicSettings(
        method=body.method,
        topics=body.topics,
        min_size=body.min_size,
        outliers=body.outliers,
        words=body.words,
        diversity=body.diversity,
        labels=tuple(body.labels),
        seed=body.seed,
    )
    model = Prompted(call.service.encoder, ())

    def work() -> dict[str, Any]:
        found = fit_topics(given.texts, vectors=given.vectors_ND, encoder=model, settings=settings, by=word_tagger(call))
        return {
            "labels": found.labels,
            "topics": [_topic(each) for each in found.topics],
            "outliers": found.outliers,
            "coherence": found.coherence,
            "diversity": found.diversity,
        }

    return _reply(call, given, await call.service.in_analysis_thread(call.errand, work))


def _clusters(call: Call, given: Collection, body: ClustersRequest) -> dict[str, Any]:
    options = ClusterOptions(method=body.method, k=body.k, threshold=body.threshold, min_size=body.min_size, seed=body.seed)
    found = cluster(given.vectors_ND, options)
    phrases = cluster_phrases(given.texts, found.labels_N.tolist(), top=body.phrases, by=word_tagger(call))
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
    Operation("POST", "/api/pairs", "munjang", "Texts of like meaning.", pairs, PairsRequest, PairsOut, computes=True),
    Operation("POST", "/api/clusters", "munjang", "Clusters with names.", clusters, ClustersRequest, ClustersOut, computes=True),
    Operation("POST", "/api/map", "munjang", "A place for each text, and clusters.", plane, MapRequest, MapOut, computes=True),
    Operation("POST", "/api/keywords", "munjang", "Keywords of each text.", keywords, KeywordsRequest, KeywordsOut, computes=True),
    Operation("POST", "/api/topics", "munjang", "Topics of a collection.", topics, TopicsRequest, TopicsOut, computes=True),
)
