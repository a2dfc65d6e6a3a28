"""A small collection with known topics: texts of our own and vectors that lie around one direction per topic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import TopicModel
from munjang.text.tagging import choose_tagger

WORDS = {
    "weather": "rain snow wind storm cloud thunder winter summer umbrella forecast".split(),  # noqa: SIM905
    "food": "bread soup cheese noodle kitchen pepper dinner recipe oven butter".split(),  # noqa: SIM905
    "trains": "train station ticket platform railway carriage timetable conductor track tunnel".split(),  # noqa: SIM905
    "law": "court judge lawyer statute verdict appeal witness crime sentence trial".split(),  # noqa: SIM905
}
DIMENSION = 24


@dataclass(frozen=True)
class Collection:
    texts: list[str]
    vectors: np.ndarray
    truth: np.ndarray


def made(each: int, *, seed: int = 0, kinds: tuple[str, ...] = tuple(WORDS)) -> Collection:
    random = np.random.default_rng(seed)
    directions = np.random.default_rng(7).standard_normal((len(WORDS), DIMENSION))
    texts, vectors, truth = [], [], []
    for kind in kinds:
        number = list(WORDS).index(kind)
        for _ in range(each):
            texts.append(" ".join(random.choice(WORDS[kind], size=6)) + f" note{len(texts)}x{seed}")
            vectors.append(directions[number] + 0.8 * random.standard_normal(DIMENSION))
            truth.append(number)
    return Collection(texts, np.array(vectors, dtype=np.float32), np.array(truth))


@pytest.fixture(scope="session")
def collection() -> Collection:
    return made(30)


@pytest.fixture(scope="session")
def model(collection: Collection) -> TopicModel:
    return fit_topics(collection.texts, vectors=collection.vectors, by=choose_tagger("plain"))
