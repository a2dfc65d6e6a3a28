"""The rows of a bulk folder or .npy file, millions of them → which to keep so that no two say nearly the same, in bounded memory.

What stays is what `munjang.dedupe` keeps: rows are walked in order, and a row goes if it is at least as close as the threshold to one that
stays. But pairs are found out of core:

1. one pass makes a key of every row's content: equal rows go without being compared. It also takes the sample that centres are made of;
2. a second pass deals the rows into inverted lists on disk (`vectors/inverted_lists.py`), near borders into several;
3. every list is compared with itself and its visitors (`vectors/near_pairs.py`), here or on the workers of a Dask cluster;
4. the walk. A row that had more pairs than were kept, all of whose known ones go, is looked at again among the rows that are left.

Which rows are near each other is a function of their contents alone. So the order of rows decides only which of those stays (the first).
What is done is kept in a working folder, with which a killed run goes on where it was.

Shapes: N rows, D dimensions, P pairs, G rows that go.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.dedupe import dedupe
from munjang.atomic import atomic_file, atomic_write, make_folder
from munjang.bulk.row_source import RowSource, open_rows, to_floats
from munjang.errors import InputError
from munjang.file_lock import hold_lock
from munjang.limits import usable_cores
from munjang.options import Option, check_options, default_of
from munjang.types import Ints, Vectors
from munjang.vectors.centres import find_centres
from munjang.vectors.content_sample import ContentSample, find_first_rows, list_contents, make_content_keys
from munjang.vectors.inverted_lists import EXACT, REACH, InvertedLists, count_lists, measure_margin
from munjang.vectors.list_runs import ListRuns
from munjang.vectors.near_pairs import PAIR, find_list_pairs
from munjang.vectors.similarity import prepare_rows
from munjang.wording import brief_repr

_SAMPLED_PER_LIST = 24
_STEPS = 6  # of k-means
_RUN_BYTES = 96 * 2**20
_LISTS = 64  # whose pairs are one file
_STATE, _VERSION = "state.json", 1
KEPT, DROPPED, OPEN = 0, 1, 2

Progress = Callable[[int], None]
"""Called with rows that are done; each row counts three times: keyed, dealt, compared."""
PASSES = 3


@brief_repr
@dataclass(frozen=True, eq=False)
class FolderDeduped:
    """What goes: rows, counted from 0 and ascending, the row that stays in the stead of each, and their cosines."""

    rows: int
    row_G: Ints
    kept_G: Ints
    score_G: Vectors

    @property
    def kept(self) -> int:
        """How many rows stay."""
        return self.rows - len(self.row_G)


def dedupe_output(
    place: str | Path,
    *,
    threshold: Annotated[float, Option("Minimum cosine of near-duplicates.", min=0, max=1)] = default_of(dedupe, "threshold"),
    exact: Annotated[bool, Option("Miss no pair; takes several times as long.")] = False,
    work: Path | None = None,
    threads: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
) -> FolderDeduped:
    """Return which rows of a bulk folder or .npy file go: all near-duplicates but the first.

    `work` is a folder for what takes long; the same call goes on with it after a crash, and removes it in the end. With a Dask `client`
    lists are compared on its workers, all of which read and write this folder.
    """
    check_options(dedupe_output, locals())
    source = open_rows(place)
    if not source.rows:
        raise InputError(f"{place}: holds no row, expected at least one")
    job = f"{_VERSION} {source.identity} {threshold} {exact} {_RUN_BYTES} {_LISTS} {count_lists(source.rows)}"
    with _working_folder(work, job) as folder:
        reach, told = EXACT if exact else REACH, progress or (lambda _: None)
        return _Deduping(source, folder.absolute(), threshold, reach, threads or usable_cores(), client, told).run()


@contextmanager
def _working_folder(work: Path | None, job: str) -> Iterator[Path]:
    """Hold a folder that has nothing in it but what the same job left; it goes when the block ends without an error."""
    wanted = json.dumps({"munjang_dedupe": hashlib.sha256(job.encode()).hexdigest()})
    if work is None:
        with tempfile.TemporaryDirectory(prefix="munjang-dedupe-") as folder:
            atomic_write(Path(folder) / _STATE, wanted)
            yield Path(folder)
        return
    make_folder(work.absolute().parent)
    with hold_lock(work.with_name(f"{work.name}.lock"), name=str(work), purpose="dedupe"):
        state = work / _STATE
        if work.is_dir() and _read_job(work) != wanted:
            if any(work.iterdir()) and not state.is_file():
                raise InputError(f"{work}: is not a working folder of munjang dedupe\n  remove it, or write elsewhere")
            _remove(work)
        make_folder(work)
        atomic_write(state, wanted)
        yield work
        _remove(work)
    work.with_name(f"{work.name}.lock").unlink(missing_ok=True)


def _remove(work: Path) -> None:
    """Remove a working folder; what says that it is one goes last, so that a killed removal can be repeated."""
    for path in work.iterdir():
        if path.name != _STATE:
            path.unlink()
    (work / _STATE).unlink(missing_ok=True)
    work.rmdir()


class _Deduping:
    """The four steps, with what they share."""

    def __init__(
        self, source: RowSource, folder: Path, threshold: float, reach: float, threads: int, client: Any, progress: Progress
    ) -> None:
        self.source, self.folder, self.threshold, self.reach = source, folder, threshold, reach
        self.threads, self.client, self.progress = threads, client, progress

    def run(self) -> FolderDeduped:
        """Do all steps, passing over what an earlier run did."""
        first_N, sample_KD = self._read_keys()
        margin = measure_margin(self.threshold, self.reach)
        lists = count_lists(int(np.count_nonzero(first_N == np.arange(len(first_N)))))
        lists_of = InvertedLists(find_centres(sample_KD, lists, steps=_STEPS), margin)
        runs = self._deal(lists_of, first_N)
        instead_N, score_N = self._walk(runs, first_N)
        row_G = np.flatnonzero(instead_N != np.arange(len(instead_N)))
        return FolderDeduped(len(first_N), row_G, instead_N[row_G], np.minimum(score_N[row_G], 1))

    def _read_keys(self) -> tuple[Ints, Vectors]:
        """Return the first row of each row's content, and the sample for centres."""
        path = self.folder / "keys.npz"
        if not path.is_file():
            keys, start = np.empty((self.source.rows, 2), dtype=np.uint64), 0
            sample: ContentSample | None = None
            for block in self.source.blocks():
                part = make_content_keys(list_contents(block.vectors_ND, block.texts))
                keys[start : start + len(part)] = part
                unit_ND = prepare_rows(to_floats(block.vectors_ND), "cosine")
                if not np.isfinite(unit_ND).all():
                    raise InputError(f"{self.source.place}: holds NaN or infinity; expected finite numbers\n  encode those texts again")
                sample = sample or ContentSample(_SAMPLED_PER_LIST * count_lists(self.source.rows), unit_ND.shape[1])
                sample.offer(part, unit_ND, start)
                start += len(part)
                self.progress(len(part))
            assert sample is not None
            with atomic_file(path) as handle:
                np.savez(handle, first=find_first_rows(keys), sample=sample.rows()[1])
        else:
            self.progress(self.source.rows)
        with np.load(path, allow_pickle=False) as found:
            return found["first"], found["sample"]

    def _deal(self, lists: InvertedLists, first_N: Ints) -> ListRuns:
        """Write the first rows of all contents into runs."""
        runs: ListRuns | None = None
        for run, (start, raw_ND) in enumerate(self._read_parts()):
            if runs is None:
                runs = ListRuns(self.folder, raw_ND.dtype, raw_ND.shape[1], len(lists.centre_LD))
            if not runs.has(run):
                row_N = np.arange(start, start + len(raw_ND))
                _write_run(runs, run, lists, row_N, raw_ND, first_N[start : start + len(raw_ND)] == row_N)
            self.progress(len(raw_ND))
        assert runs is not None
        return runs

    def _read_parts(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield blocks joined to the size of a run."""
        held: list[NDArray[Any]] = []
        start = 0
        for block in self.source.blocks():
            held.append(block.vectors_ND)
            if sum(part.nbytes for part in held) >= _RUN_BYTES:
                yield start, np.concatenate(held)
                start += sum(map(len, held))
                held = []
        if held:
            yield start, np.concatenate(held)

    def _walk(self, runs: ListRuns, first_N: Ints) -> tuple[Ints, Vectors]:
        """Return the row that stays in the stead of each, and their cosine."""
        instead_N = first_N.copy()
        score_N = np.ones(len(first_N), dtype=np.float32)
        state_N = np.where(first_N == np.arange(len(first_N)), OPEN, DROPPED).astype(np.uint8)
        sizes = runs.sizes()[0]
        looks = 0
        while (state_N == OPEN).any():
            pairs, cut = self._find_pairs(runs, state_N, looks, sizes)
            has_more = np.zeros(len(first_N), dtype=bool)
            has_more[cut] = True
            _decide(pairs, has_more, state_N, instead_N, score_N)
            looks += 1
        same = np.flatnonzero(first_N != np.arange(len(first_N)))
        instead_N[same], score_N[same] = instead_N[first_N[same]], score_N[first_N[same]]
        return instead_N, score_N

    def _find_pairs(self, runs: ListRuns, state_N: NDArray[np.uint8], look: int, sizes: Ints) -> tuple[NDArray[Any], Ints]:
        """Return the pairs of the rows that are open with all that may stay, by later and earlier row."""

        groups = [range(first, min(first + _LISTS, runs.lists)) for first in range(0, runs.lists, _LISTS)]
        for lists in self._compare(runs, state_N, look, groups):
            if look == 0:
                self.progress(int(sizes[lists.start : lists.stop].sum()))
        results = []
        for lists in groups:
            with np.load(_name_pairs(self.folder, look, lists), allow_pickle=False) as written:
                results.append((written["pairs"], written["cut"]))
        pairs = np.concatenate([pairs for pairs, _ in results]) if results else np.empty(0, dtype=PAIR)
        pairs = pairs[np.lexsort((pairs["earlier"], pairs["later"]))]
        return pairs, np.concatenate([cut for _, cut in results])

    def _compare(self, runs: ListRuns, state_N: NDArray[np.uint8], look: int, groups: Sequence[range]) -> Iterator[range]:
        """Let the pairs of all lists be on disk, a file for each group, and yield the groups that are done."""
        if self.client is None:
            with ThreadPoolExecutor(self.threads) as pool:
                yield from pool.map(lambda lists: _write_pairs(runs, state_N, look, lists, self.threshold), groups)
            return
        from munjang.bulk.dask_run import run_tasks

        with atomic_file(_name_state(self.folder, look)) as handle:
            np.save(handle, state_N, allow_pickle=False)
        job, kind = _read_job(self.folder), runs.dtype.str
        task = _Task(str(self.folder), job, kind, runs.dimension, runs.lists, runs.written, self.threshold, look)
        yield from run_tasks(self.client, write_pairs_of, ((task, lists) for lists in groups), then="call it again")


class _Task(NamedTuple):
    """What a worker of a cluster needs to know about a look at all lists."""

    folder: str
    job: str
    dtype: str
    dimension: int
    lists: int
    runs: int
    threshold: float
    look: int


def write_pairs_of(task: _Task, lists: range) -> range:
    """Find the pairs of some lists on a worker."""
    runs, state_N = _open_work(task)
    return _write_pairs(runs, state_N, task.look, lists, task.threshold)


@lru_cache(maxsize=1)
def _open_work(task: _Task) -> tuple[ListRuns, NDArray[np.uint8]]:
    """Open a working folder once for all lists of a look."""
    folder = Path(task.folder)
    runs = ListRuns(folder, np.dtype(task.dtype), task.dimension, task.lists)
    if _read_job(folder) != task.job or not all(runs.has(run) for run in range(task.runs)):
        fact = f"{folder}: is on this worker's machine not the working folder of this job"
        raise InputError(f"{fact}\n  write the output to a file system that every worker reads and writes under the same path")
    return runs, np.load(_name_state(folder, task.look), mmap_mode="r", allow_pickle=False)


def _read_job(folder: Path) -> str:
    """Return what a working folder says that it belongs to; nothing if it says nothing."""
    state = folder / _STATE
    return state.read_text(encoding="utf-8") if state.is_file() else ""


def _name_state(folder: Path, look: int) -> Path:
    return folder / f"open-{look:02d}.npy"


def _name_pairs(folder: Path, look: int, lists: range) -> Path:
    return folder / f"pairs-{look:02d}-{lists.start:06d}.npz"


def _write_pairs(runs: ListRuns, state_N: NDArray[np.uint8], look: int, lists: range, threshold: float) -> range:
    """Write the pairs of some lists, unless they are there."""
    path = _name_pairs(runs.folder, look, lists)
    if not path.is_file():
        found = [
            find_list_pairs(
                runs,
                number,
                threshold,
                to_floats,
                counts=lambda row_E: state_N[row_E] != DROPPED,
                asks=lambda row_P: state_N[row_P] == OPEN,
            )
            for number in lists
        ]
        with atomic_file(path) as handle:
            np.savez(handle, pairs=np.concatenate([each.pairs_P for each in found]), cut=np.concatenate([each.cut for each in found]))
    return lists


def _write_run(runs: ListRuns, run: int, lists: InvertedLists, row_N: Ints, raw_ND: NDArray[Any], wanted_N: NDArray[np.bool_]) -> None:
    """Write the wanted ones of some rows."""
    row_M, raw_MD = row_N[wanted_N], raw_ND[wanted_N]
    runs.write(run, row_M, raw_MD, lists.place(len(row_M), lambda rows: prepare_rows(to_floats(raw_MD[rows]), "cosine")))


def _decide(pairs_P: NDArray[Any], has_more_N: NDArray[np.bool_], state_N: NDArray[np.uint8], instead_N: Ints, score_N: Vectors) -> None:
    """Walk the open rows in order: one goes if a row before it that is near stays, and stays if all those go and there are no more."""
    later_P, earlier_P, score_P = pairs_P["later"].astype(np.int64), pairs_P["earlier"].astype(np.int64), pairs_P["score"]
    rows, begins = np.unique(later_P, return_index=True)
    waiting = np.zeros(len(state_N), dtype=bool)
    waiting[rows] = True
    state_N[(state_N == OPEN) & ~waiting] = KEPT
    for row, begin, end in zip(rows.tolist(), begins.tolist(), [*begins.tolist(), len(later_P)][1:], strict=True):
        near = earlier_P[begin:end]
        states = state_N[near]
        stays = states == KEPT
        if stays.any():
            best = int(np.where(stays, score_P[begin:end], -np.inf).argmax())
            state_N[row], instead_N[row], score_N[row] = DROPPED, near[best], score_P[begin + best]
        elif not has_more_N[row] and not (states == OPEN).any():
            state_N[row] = KEPT
