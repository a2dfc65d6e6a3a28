"""`munjang demo`: the sample collection, a few queries in Korean and English, and the sentences nearest to each."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.options import ComputeOption, JsonOption, ModelOption, examples, new_app
from munjang.cli.show import emit, note, print_table

if TYPE_CHECKING:
    from munjang.models.samples import DemoQuery, Sample
    from munjang.models.sentence_encoder import SentenceEncoder

LANGUAGES = {"ko": "Korean", "en": "English"}

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
    k: Annotated[int, typer.Option("-k", min=1, help="Sentences per query.")] = 3,
    model: ModelOption = None,
    compute: ComputeOption = "float32",
    as_json: JsonOption = False,
) -> None:
    """Search a small collection in Korean and English.

    Encodes 240 sentences that come with Munjang and prints the nearest ones for ten queries.
    """
    from munjang.models.samples import DEMO_QUERIES, load_samples
    from munjang.models.sentence_encoder import SentenceEncoder

    start = time.perf_counter()
    encoder = SentenceEncoder.load(model, compute=compute)
    loaded = time.perf_counter()
    samples = load_samples()
    hits = search_samples(encoder, samples, DEMO_QUERIES, k=k)
    done = time.perf_counter()
    if as_json:
        emit({"model": encoder.name, "sentences": len(samples), "seconds": round(done - start, 3), "hits": [asdict(hit) for hit in hits]})
        return
    note(f"model {encoder.name}, loaded in {loaded - start:.2f} s")
    note(f"{len(samples)} sentences and {len(DEMO_QUERIES)} queries in {done - loaded:.2f} s")
    _print(hits)


def search_samples(encoder: SentenceEncoder, samples: list[Sample], queries: tuple[DemoQuery, ...], *, k: int) -> list[DemoHit]:
    """Return the k nearest sentences of every query, best first."""
    from munjang.vectors.topk import top_k

    documents = encoder.encode_document([sample.text for sample in samples])
    asked = encoder.encode_query([query.text for query in queries])
    scores, places = top_k(asked, documents, k=k, metric=encoder.folder.similarity)
    return [
        DemoHit(
            query=query.text,
            language=query.language,
            rank=rank,
            score=round(float(score), 4),
            id=samples[place].id,
            subject=samples[place].subject,
            on_subject=samples[place].subject == query.subject,
            text=samples[place].text,
        )
        for query, row, found in zip(queries, scores, places, strict=True)
        for rank, (score, place) in enumerate(zip(row, found, strict=True), 1)
    ]


def _print(hits: list[DemoHit]) -> None:
    rows = [(hit.query if hit.rank == 1 else "", str(hit.rank), f"{hit.score:.2f}", hit.subject, hit.text) for hit in hits]
    print_table(("query", "rank", "score", "subject", "sentence"), rows, right=("rank", "score"))
    for language, name in LANGUAGES.items():
        first = [hit for hit in hits if hit.rank == 1 and hit.language == language]
        right = sum(hit.on_subject for hit in first)
        print(f"{name}: {right} of {len(first)} queries found a sentence on their subject first")
