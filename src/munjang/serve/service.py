"""What all routes share: the models over the batcher, libraries, jobs, and threads to work in.

Work that blocks (a search, an analysis, re-ranking) runs in a few threads, and what waits for one is bounded. The numbers themselves are
computed by the batcher's threads alone, so a core never has two things to compute.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from munjang.analyze.classify.classifier import TextClassifier
from munjang.errors import UsageError, quote
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.late_reranker import LateReranker
from munjang.models.pair_classifier import PairClassifier
from munjang.models.ranking import Ranker
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.batcher import Batcher
from munjang.serve.body import Held
from munjang.serve.engines import batch_cross_encoder, batch_encoder, batch_pair_classifier
from munjang.serve.errors import Overloaded, Refusal
from munjang.serve.jobs import Jobs
from munjang.serve.keys import KeyRing
from munjang.serve.libraries import Libraries
from munjang.serve.library_writes import LibraryWrites
from munjang.serve.metrics import Metrics
from munjang.serve.settings import ServerSettings
from munjang.serve.work_item import RequestWork
from munjang.serve.workers import Workers

Value = TypeVar("Value")
Model = TypeVar("Model", bound=SentenceEncoder | CrossEncoder | PairClassifier)

SNAPSHOTS = 2
"""Copies of libraries that are made and sent at once."""

UNNAMED = "default/not-specified"
"""What infinity's clients send for the default model."""

THREADS = 8
"""Searches and analyses at work at once; they mostly wait for the batcher or the disk."""


@dataclass(frozen=True, eq=False)
class ServedClassifier:
    """A classifier of texts, and the served model that reads them for it."""

    name: str
    made: TextClassifier
    encoder: SentenceEncoder


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
        pair_classifiers: Sequence[PairClassifier] = (),
        classifiers: Mapping[str, TextClassifier] | None = None,
        classifier_models: Sequence[SentenceEncoder] = (),
    ) -> None:
        """Begin with a model and maybe a cross-encoder, which requests get that name none, and others that they get by name.

        `classifier_models` read texts for classifiers alone; no request can name them.
        """
        self.settings = settings
        self.keys = KeyRing(settings.key, settings.keys_file)
        self.metrics = Metrics()
        rerankers = (*([] if reranker is None else [reranker]), *more_rerankers)
        placements = [each.engine.placement for each in (model, *more_models, *classifier_models)] + [
            each.engine.placement for each in rerankers
        ]
        largest = max(placement.batch_tokens for placement in placements)
        self.batcher = Batcher(batch_tokens=largest, limits=settings.limits, observer=self.metrics)
        self.encoders = tuple(batch_encoder(each, self.batcher) for each in (model, *more_models))
        self.rerankers = tuple(batch_cross_encoder(each, self.batcher) for each in rerankers)
        self.pair_classifiers = tuple(batch_pair_classifier(each, self.encoders, self.batcher) for each in pair_classifiers)
        for models in (self.encoders, self.rerankers, self.pair_classifiers):
            _check_names([each.name for each in models])
        self._classifier_models = tuple(batch_encoder(each, self.batcher) for each in classifier_models)
        self.classifiers = {name: ServedClassifier(name, made, self._encoder_of(name, made)) for name, made in (classifiers or {}).items()}
        self._snapshots = threading.BoundedSemaphore(SNAPSHOTS)
        self.jobs = Jobs(limit=settings.limits.waiting_uploads)
        self.upload_room = Held(settings.limits.max_held_upload_bytes, "uploads of {:,} bytes are unfinished", retry_after=10)
        patience = settings.limits.wait_seconds
        self._calls = Workers("calls", threads=THREADS, waiting=settings.limits.waiting_calls, wait_seconds=patience)
        self._analyses = Workers("analyses", threads=1, waiting=settings.limits.waiting_analyses, wait_seconds=patience)
        self._texts = ThreadPoolExecutor(2, thread_name_prefix="munjang-text")
        self._scratch = Scratch()
        self.libraries = Libraries(
            self.encoders,
            libraries,
            settings.data,
            scratch=self._scratch.folder,
            analyser=settings.analyser,
            dictionary=settings.dictionary,
        )
        self.writes = LibraryWrites(self._calls, settings.limits)
        self.metrics.watch(self.batcher)

    @property
    def encoder(self) -> SentenceEncoder:
        """The model of requests that name none."""
        return self.encoders[0]

    def find_encoder(self, name: str | None) -> SentenceEncoder:
        """Return the model of a name, or refuse one that is not served; without a name, or where one model alone is served, that one."""
        return _find_model(self.encoders, name, "model")

    def find_reranker(self, name: str | None) -> Ranker:
        """Return the cross-encoder of a name, or the sentence encoder, whose tokens are compared; without a name the first of these."""
        named_encoder = next((each for each in self.encoders if each.name == name), None)
        if self.rerankers and named_encoder is None:
            return _find_model(self.rerankers, name, "cross-encoder")
        return LateReranker(named_encoder or self.find_encoder(name))

    def find_cross_encoder(self, name: str | None) -> CrossEncoder:
        """Return the cross-encoder of a name, likewise; where there is none, the refusal says how to get one."""
        if not self.rerankers:
            raise Refusal(424, "no cross-encoder is served\n  start the server with --reranker")
        return _find_model(self.rerankers, name, "cross-encoder")

    def find_pair_model(self, name: str | None) -> SentenceEncoder | CrossEncoder | PairClassifier:
        """Return the model of a name, of whichever kind, to score pairs with; without a name, the default sentence encoder."""
        everyone: tuple[SentenceEncoder | CrossEncoder | PairClassifier, ...] = (*self.encoders, *self.rerankers, *self.pair_classifiers)
        return _find_model(everyone, name, "model")

    def find_labeller(self) -> CrossEncoder | PairClassifier:
        """Return what labels pairs for requests that name no model: the first pair classifier, else the first cross-encoder."""
        return self.pair_classifiers[0] if self.pair_classifiers else self.find_cross_encoder(None)

    def find_classifier(self, name: str | None) -> ServedClassifier:
        """Return the classifier of a name, or the only one; where there is none, the refusal says how to get one."""
        if not self.classifiers:
            raise Refusal(424, "no classifier is served\n  start the server with --classifier")
        if name in self.classifiers:
            return self.classifiers[name]
        if name is None and len(self.classifiers) == 1:
            return next(iter(self.classifiers.values()))
        asked = "no name is given" if name is None else f"no classifier named {quote(name)} is served"
        raise Refusal(404, f"{asked}; there is: {', '.join(self.classifiers)}", field="classifier")

    def _encoder_of(self, name: str, made: TextClassifier) -> SentenceEncoder:
        known = (*self.encoders, *self._classifier_models)
        found = next((each for each in known if each.fingerprint == made.encoder), None)
        if found is None:
            raise UsageError(
                f"the classifier {quote(name)} was made with the model {made.encoder_name} ({made.encoder[:12]}), which is not served\n"
                "  serve that model too, with --model"
            )
        return found

    async def in_thread(self, request_work: RequestWork, work: Callable[[], Value], *, texts: int = 1) -> Value:
        """Do blocking work for a call: a search, re-ranking, encoding a collection of so many texts."""
        return await self._calls.run(request_work, work, texts=texts)

    async def in_analysis_thread(self, request_work: RequestWork, work: Callable[[], Value]) -> Value:
        """Do an analysis; one at a time, because each may use every core."""
        return await self._analyses.run(request_work, work)

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


PREFIX = "munjang-serve-"
LOCK = ".lock"


class Scratch:
    """The server's folder for what need not outlive it (uploads on their way, the sample collection); `close` deletes it.

    A server that is killed cannot do that, so the next one does. A lock file beside each folder says whose server lives: it is locked
    before the folder is there, and the system lets go of it with the process. Folders without one are left alone.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        clear_abandoned(parent)
        self.folder = parent / f"{PREFIX}{secrets.token_hex(8)}"
        self._lock = FileLock(_lock_file(self.folder), thread_local=False)
        self._lock.acquire()
        self.folder.mkdir(mode=0o700)

    def close(self) -> None:
        """Delete the folder."""
        _delete(self.folder)
        self._lock.release()


def clear_abandoned(parent: Path) -> None:
    """Delete the folders whose servers are gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        file = _lock_file(folder)
        if not folder.is_dir() or folder.is_symlink() or not file.is_file():
            continue
        with suppress(Timeout, OSError), FileLock(file, timeout=0, thread_local=False):  # a server lives, or it is another user's
            _delete(folder)


def _lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + LOCK)


def _delete(folder: Path) -> None:
    """Delete a folder, then its lock file, which whoever calls holds."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with suppress(OSError):  # Windows lets nobody delete a file that is open; it is empty
            _lock_file(folder).unlink(missing_ok=True)
