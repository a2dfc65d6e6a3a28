"""One way of finding topics, alone in its process, so that its time and memory are its own. Called by topics.py; prints JSON.

    python benchmarks/topics_worker.py munjang|bertopic|bertopic-kiwi TEXTS.json VECTORS.npy

BERTopic runs with its own defaults and language="multilingual"; "bertopic-kiwi" is what its Korean users do: nouns by Kiwi in its
vectorizer.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np


def munjang(texts: list[str], vectors: np.ndarray) -> tuple[list[int], list[list[str]]]:
    from munjang.analyze.topics.fitting import fit_topics

    model = fit_topics(texts, vectors=vectors)
    return model.labels.tolist(), [[word for word, _ in topic.words] for topic in model.topics]


def bertopic(texts: list[str], vectors: np.ndarray, *, kiwi: bool) -> tuple[list[int], list[list[str]]]:
    from bertopic import BERTopic

    vectorizer = _kiwi_vectorizer() if kiwi else None
    model = BERTopic(language="multilingual", vectorizer_model=vectorizer)
    model.embedding_model = None
    labels, _ = model.fit_transform(texts, vectors)
    topics = sorted(set(labels) - {-1})
    return [int(label) for label in labels], [[word for word, _ in model.get_topic(topic) if word] for topic in topics]


def _kiwi_vectorizer() -> object:
    from kiwipiepy import Kiwi
    from sklearn.feature_extraction.text import CountVectorizer

    kiwi = Kiwi()
    nouns = ("NNG", "NNP", "SL")
    return CountVectorizer(
        tokenizer=lambda text: [token.form for token in kiwi.tokenize(text) if token.tag in nouns and len(token.form) > 1],
        token_pattern=None,
    )


def main() -> None:
    way, texts_file, vectors_file = sys.argv[1:]
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    vectors = np.load(vectors_file)
    started = time.perf_counter()
    labels, words = munjang(texts, vectors) if way == "munjang" else bertopic(texts, vectors, kiwi=way == "bertopic-kiwi")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "labels": labels,
                "words": words,
                "wall_s": time.perf_counter() - started,
                "cpu_s": usage.ru_utime + usage.ru_stime,
                "peak_mb": usage.ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
