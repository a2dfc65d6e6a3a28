"""What all routes share: the models over the batcher, libraries, jobs, and threads to work in.

Work that blocks (a search, an analysis, re-ranking) runs in a few threads, and what waits for one is bounded. The numbers themselves are
computed by the batcher's threads alone, so a core never has two things to compute.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from munjang.errors import UsageError
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.batcher import Batcher
from munjang.serve.engines import Errand, batched_cross_encoder, batched_encoder
from munjang.serve.jobs import Jobs
from munjang.serve.libraries import Libraries
from munjang.serve.metrics import Metrics
from munjang.serve.refusals import Refusal
from munjang.serve.settings import Settings
from munjang.serve.workers import Workers

Value = TypeVar("Value")

THREADS = 8
"""Searches and analyses at work at once; they mostly wait for the batcher or the disk."""


class Service:
    """The server without HTTP."""

    def __init__(
        self, settings: Settings, model: SentenceEncoder, reranker: CrossEncoder | None, *, libraries: tuple[str, ...] = ()
    ) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.batcher = Batcher(limits=settings.limits, observer=self.metrics)
        self.encoder = batched_encoder(model, self.batcher)
        self._reranker = None if reranker is None else batched_cross_encoder(reranker, self.batcher)
        self.jobs = Jobs(limit=settings.limits.waiting_uploads)
        self._calls = Workers("calls", threads=THREADS, waiting=settings.limits.waiting_calls)
        self._analyses = Workers("analyses", threads=1, waiting=settings.limits.waiting_analyses)
        self._texts = ThreadPoolExecutor(2, thread_name_prefix="munjang-text")
        self._scratch = tempfile.TemporaryDirectory(prefix="munjang-serve-")
        self.libraries = Libraries(self.encoder, libraries, settings.data, scratch=Path(self._scratch.name), analyser=settings.analyser)
        self.metrics.watch(self.batcher)

    @property
    def reranker(self) -> CrossEncoder:
        """The cross-encoder, or a refusal that says how to get one."""
        if self._reranker is None:
            raise Refusal(424, "no cross-encoder is served\n  start the server with --reranker")
        return self._reranker

    @property
    def has_reranker(self) -> bool:
        """Whether there is a cross-encoder."""
        return self._reranker is not None

    async def in_thread(self, errand: Errand, work: Callable[[], Value]) -> Value:
        """Do blocking work for a call: a search, re-ranking, encoding a collection."""
        return await self._calls.run(errand, work)

    async def in_analysis_thread(self, errand: Errand, work: Callable[[], Value]) -> Value:
        """Do an analysis; one at a time, because each may use every core."""
        return await self._analyses.run(errand, work)

    async def in_text_thread(self, work: Callable[..., Value], *arguments: Any) -> Value:
        """Parse or tokenise something large without holding up the others."""
        return await asyncio.get_running_loop().run_in_executor(self._texts, lambda: work(*arguments))

    def upload_folder(self) -> Path:
        """Return where files that clients send are kept while they are read."""
        return Path(self._scratch.name)

    def upload_suffix(self, name: str) -> str:
        """Return the file's ending, which says its format, or refuse the name."""
        from munjang.text.readers import format_of

        plain = Path(name.replace("\\", "/").replace("\x00", "")).name
        try:
            kind = format_of(Path(plain))
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
        self._scratch.cleanup()
