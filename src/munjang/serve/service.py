"""What all routes share: the models over the batcher, libraries, jobs, and threads to work in.

Work that blocks (a search, an analysis, re-ranking) runs in a few threads, and what waits for one is bounded. The numbers themselves are
computed by the batcher's threads alone, so a core never has two things to compute.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from munjang.errors import UsageError, quote
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.batcher import Batcher
from munjang.serve.body import Held
from munjang.serve.engines import batched_cross_encoder, batched_encoder
from munjang.serve.errors import Overloaded, Refusal
from munjang.serve.jobs import Jobs
from munjang.serve.keys import KeyRing
from munjang.serve.libraries import Libraries
from munjang.serve.library_writes import LibraryWrites
from munjang.serve.metrics import Metrics
from munjang.serve.scratch import Scratch
from munjang.serve.settings import ServerSettings
from munjang.serve.work_item import RequestWork
from munjang.serve.workers import Workers

Value = TypeVar("Value")
Model = TypeVar("Model", SentenceEncoder, CrossEncoder)

SNAPSHOTS = 2
"""Copies of libraries that are made and sent at once."""

UNNAMED = "default/not-specified"
"""What infinity's clients send for the default model."""

THREADS = 8
"""Searches and analyses at work at once; they mostly wait for the batcher or the disk."""


class Service:
    """The server without HTTP."""

    def __init__(
        self,
        settings: ServerSettings,
        model: SentenceEncoder,
        reranker: CrossEncoder | None,
        *,
        libraries: tuple[str, ...] = (),
        more_models: Sequence[SentenceEncoder] = (),
        more_rerankers: Sequence[CrossEncoder] = (),
    ) -> None:
        """Begin with a model and maybe a cross-encoder, which requests get that name none, and others that they get by name."""
        self.settings = settings
        self.keys = KeyRing(settings.key, settings.keys_file)
        self.metrics = Metrics()
        rerankers = (*([] if reranker is None else [reranker]), *more_rerankers)
        placements = [each.engine.placement for each in (model, *more_models)] + [each.engine.placement for each in rerankers]
        largest = max(placement.batch_tokens for placement in placements)
        self.batcher = Batcher(batch_tokens=largest, limits=settings.limits, observer=self.metrics)
        self.encoders = tuple(batched_encoder(each, self.batcher) for each in (model, *more_models))
        self.rerankers = tuple(batched_cross_encoder(each, self.batcher) for each in rerankers)
        for models in (self.encoders, self.rerankers):
            _check_names([each.name for each in models])
        self._snapshots = threading.BoundedSemaphore(SNAPSHOTS)
        self.jobs = Jobs(limit=settings.limits.waiting_uploads)
        self.upload_room = Held(settings.limits.max_held_upload_bytes, "uploads of {:,} bytes are unfinished", retry_after=10)
        patience = settings.limits.wait_seconds
        self._calls = Workers("calls", threads=THREADS, waiting=settings.limits.waiting_calls, wait_seconds=patience)
        self._analyses = Workers("analyses", threads=1, waiting=settings.limits.waiting_analyses, wait_seconds=patience)
        self._texts = ThreadPoolExecutor(2, thread_name_prefix="munjang-text")
        self._scratch = Scratch()
        self.libraries = Libraries(self.encoders, libraries, settings.data, scratch=self._scratch.folder, analyser=settings.analyser)
        self.writes = LibraryWrites(self._calls, settings.limits)
        self.metrics.watch(self.batcher)

    @property
    def encoder(self) -> SentenceEncoder:
        """The model of requests that name none."""
        return self.encoders[0]

    def find_encoder(self, name: str | None) -> SentenceEncoder:
        """Return the model of a name, or refuse one that is not served; without a name, or where one model alone is served, that one."""
        return _find_model(self.encoders, name, "model")

    def find_reranker(self, name: str | None) -> CrossEncoder:
        """Return the cross-encoder of a name, likewise; where there is none, the refusal says how to get one."""
        if not self.rerankers:
            raise Refusal(424, "no cross-encoder is served\n  start the server with --reranker")
        return _find_model(self.rerankers, name, "cross-encoder")

    async def in_thread(self, errand: RequestWork, work: Callable[[], Value], *, texts: int = 1) -> Value:
        """Do blocking work for a call: a search, re-ranking, encoding a collection of so many texts."""
        return await self._calls.run(errand, work, texts=texts)

    async def in_analysis_thread(self, errand: RequestWork, work: Callable[[], Value]) -> Value:
        """Do an analysis; one at a time, because each may use every core."""
        return await self._analyses.run(errand, work)

    async def in_text_thread(self, work: Callable[..., Value], *arguments: Any) -> Value:
        """Parse or tokenise something large without holding up the others."""
        return await asyncio.get_running_loop().run_in_executor(self._texts, lambda: work(*arguments))

    def take_snapshot_slot(self) -> Callable[[], None]:
        """Return what gives a slot back: a copy of a library needs room on the disk until it is sent."""
        if not self._snapshots.acquire(blocking=False):
            raise Overloaded(f"{SNAPSHOTS} copies of libraries are being sent, the limit\n  try again in 10 s", retry_after=10)
        return self._snapshots.release

    def upload_folder(self) -> Path:
        """Return where files that clients send are kept while they are read."""
        return self._scratch.folder

    def upload_suffix(self, name: str) -> str:
        """Return the file's ending, which says its format, or refuse the name."""
        from munjang.text.readers import find_format

        plain = Path(name.replace("\\", "/").replace("\x00", "")).name
        try:
            kind = find_format(Path(plain))
        except (UsageError, ValueError):
            raise Refusal(
                422, "filename: expected a name that ends in .txt, .csv, .tsv, .jsonl, .json or .parquet", field="filename"
            ) from None
        return f".{kind}.gz" if plain.lower().endswith(".gz") else f".{kind}"

    def close(self) -> None:
        """Finish what was accepted and let go of everything."""
        self.jobs.close()
        self._analyses.close()
        self._calls.close()
        self._texts.shutdown(wait=True)
        self.batcher.stop()
        self.libraries.close()
        self._scratch.close()


def _find_model(models: Sequence[Model], name: str | None, kind: str) -> Model:
    if not name or len(models) == 1 or name == UNNAMED:
        return models[0]
    for each in models:
        if each.name == name:
            return each
    raise Refusal(404, f"no {kind} named {quote(name)} is served; there is: {', '.join(each.name for each in models)}", field="model")


def _check_names(names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two models are named {quote(twice)}, so a request could not tell them apart\n  rename one of the folders")
