"""Munjang's own routes for a collection of texts: pairs, clusters, a map, keywords, topics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from munjang.analyze.clusters import cluster
from munjang.analyze.keywords import extract_keywords, find_cluster_phrases
from munjang.analyze.layout import lay_out
from munjang.analyze.pairs import mine_pairs
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import Topic
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.collection import Collection, check_short, collection_of, encoded_texts, word_tagger
from munjang.serve.errors import Refusal
from munjang.serve.schemas.base import options_in
from munjang.serve.schemas.collection import (
    ClustersOut,
    ClustersRequest,
    CollectionRequest,
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
        call.errand, lambda: mine_pairs(given.vectors_ND, texts=given.texts, **options_in(body, mine_pairs))
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
        places_N2 = lay_out(given.vectors_ND, **options_in(body, lay_out))
        return {**_clusters(call, given, body), "places": places_N2}

    return _reply(call, given, await call.service.in_analysis_thread(call.errand, work))


async def keywords(call: Call, body: KeywordsRequest) -> Reply:
    """Find the keywords of each text."""
    options = options_in(body, extract_keywords)
    if options["min_words"] > options["max_words"]:
        raise Refusal(422, "min_words is more than max_words", field="min_words")
    await check_short(call, [" ".join(options["seed_words"])], call.encoder, field="seed_words")
    vectors_ND = await encoded_texts(call, body.texts)
    model = call.encoder.with_prompt(warn=False)

    def work() -> list[Any]:
        found = extract_keywords(body.texts, model, **options, vectors=vectors_ND, by=word_tagger(call))
        return [[asdict(one) for one in each] for each in found]

    found = await call.service.in_analysis_thread(call.errand, work)
    return Reply({"keywords": found, "texts": [clean(text) for text in body.texts]}, headers=call.truncation_headers())


async def topics(call: Call, body: TopicsRequest) -> Reply:
    """Find the topics of a collection."""
    options = options_in(body, fit_topics)
    given = await collection_of(call, body)
    await check_short(call, options["labels"], given.model, field="labels")
    model = given.model.with_prompt(warn=False)

    def work() -> dict[str, Any]:
        found = fit_topics(given.texts, model, **options, vectors=given.vectors_ND, by=word_tagger(call))
        return {
            "labels": found.labels,
            "topics": [_topic(each) for each in found.topics],
            "outliers": found.outliers,
            "coherence": found.coherence,
            "diversity": found.diversity,
        }

    return _reply(call, given, await call.service.in_analysis_thread(call.errand, work))


def _clusters(call: Call, given: Collection, body: CollectionRequest) -> dict[str, Any]:
    found = cluster(given.vectors_ND, **options_in(body, cluster))
    phrases = find_cluster_phrases(given.texts, found.labels_N.tolist(), **options_in(body, find_cluster_phrases), by=word_tagger(call))
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
