"""`munjang demo`: the sample collection, a few queries in Korean and English, and the best sentences for each: found, then re-ranked."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.load_model import load_model
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, examples, new_app
from munjang.cli.show import emit, note, print_table
from munjang.types import DEFAULT_COMPUTE
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.models.late_reranker import LateReranker
    from munjang.models.samples import DemoQuery, Sample
    from munjang.models.sentence_encoder import SentenceEncoder

LANGUAGES = {"ko": "Korean", "en": "English"}
CANDIDATES = 10
"""Sentences for each query that the re-ranker reads."""

app = new_app()


@dataclass(frozen=True)
class DemoHit:
    """One answer to one query."""

    query: str
    language: str
    rank: int
    score: float
    id: str
    subject: str
    on_subject: bool
    text: str


@app.command(epilog=examples("munjang demo", "munjang demo -k 5 --model my-model --json"))
def demo(
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="Sentences per query.")] = 3,
    model: ModelOption = None,
    rerank: Annotated[bool, typer.Option("--rerank/--no-rerank", help="Re-rank the best hits by their tokens (MaxSim).")] = True,
    compute: ComputeOption = DEFAULT_COMPUTE,
    as_json: JsonOption = False,
) -> None:
    """Search a small sample collection in Korean and English.

    Encodes the 240 bundled sentences and prints the best ones for ten queries.
    """
    from munjang.models.samples import DEMO_QUERIES, load_samples

    start = time.perf_counter()
    encoder = load_model(model, compute=compute)
    reranker = _make_reranker(encoder) if rerank else None
    loaded = time.perf_counter()
    samples = load_samples()
    hits = search_samples(encoder, samples, DEMO_QUERIES, k=k, reranker=reranker)
    done = time.perf_counter()
    second = reranker.name if reranker else None
    if as_json:
        seconds = round(done - start, 3)
        emit(
            {
                "model": encoder.name,
                "reranker": second,
                "sentences": len(samples),
                "seconds": seconds,
                "hits": [asdict(hit) for hit in hits],
            }
        )
        return
    note(f"model {encoder.name}{f', re-ranker {second}' if second else ''}, loaded in {loaded - start:.2f} s")
    note(f"{count(len(samples), 'sentence')} and {len(DEMO_QUERIES)} queries in {done - loaded:.2f} s")
    _print(hits)


def search_samples(
    encoder: SentenceEncoder, samples: list[Sample], queries: tuple[DemoQuery, ...], *, k: int, reranker: LateReranker | None = None
) -> list[DemoHit]:
    """Return the k best sentences of every query, best first; a re-ranker reads the nearest ones again."""
    from munjang.vectors.topk import top_k

    documents = encoder.encode_document([sample.text for sample in samples])
    asked = encoder.encode_query([query.text for query in queries])
    scores, places = top_k(asked, documents, k=max(k, CANDIDATES) if reranker else k, metric=encoder.folder.similarity)
    answers = [list(zip(row.tolist(), found.tolist(), strict=True)) for row, found in zip(scores, places, strict=True)]
    if reranker is not None:
        answers = [_rerank(query.text, found, samples, reranker) for query, found in zip(queries, answers, strict=True)]
    return [
        _hit(query, samples[place], rank=rank, score=score)
        for query, found in zip(queries, answers, strict=True)
        for rank, (score, place) in enumerate(found[:k], 1)
    ]


def _rerank(query: str, found: list[tuple[float, int]], samples: list[Sample], reranker: LateReranker) -> list[tuple[float, int]]:
    """Return scores and places as a library's search by meaning with --rerank weighs them."""
    from munjang.vectors.maxsim import WEIGHT_AFTER_MEANING as WEIGHT

    scores = reranker.predict([(query, samples[place].text) for _, place in found]).tolist()
    return sorted(((WEIGHT * own + (1 - WEIGHT) * first, place) for own, (first, place) in zip(scores, found, strict=True)), reverse=True)


def _make_reranker(encoder: SentenceEncoder) -> LateReranker:
    from munjang.models.late_reranker import LateReranker

    return LateReranker(encoder)


def _hit(query: DemoQuery, sample: Sample, *, rank: int, score: float) -> DemoHit:
    return DemoHit(
        query=query.text,
        language=query.language,
        rank=rank,
        score=round(score, 4),
        id=sample.id,
        subject=sample.subject,
        on_subject=sample.subject == query.subject,
        text=sample.text,
    )


def _print(hits: list[DemoHit]) -> None:
    rows = [(hit.query if hit.rank == 1 else "", str(hit.rank), f"{hit.score:.2f}", hit.subject, hit.text) for hit in hits]
    print_table(("query", "rank", "score", "subject", "sentence"), rows, right=("rank", "score"))
    for language, name in LANGUAGES.items():
        first = [hit for hit in hits if hit.rank == 1 and hit.language == language]
        right = sum(hit.on_subject for hit in first)
        print(f"{name}: {right} of {count(len(first), 'query')} found a sentence on their subject first")
