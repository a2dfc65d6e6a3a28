"""One shard → its files and its receipt. Doing it again, anywhere, by anyone, gives the same bytes, so nobody has to agree on who does it.

Order of writing: rejected rows, vectors, receipt. Each file is whole or not there, and the receipt comes last: where it is, the rest is.

The batches a text is encoded in follow from the shard alone, not from threads or workers; that is why outputs are byte-equal.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from munjang.bulk.input_streams import shorten_name
from munjang.bulk.job import BulkJob, BulkSettings, InputFile, Model, Receipt, ShardSpec, WrittenFile, parse_receipt
from munjang.bulk.plan import Rejected, ShardRows, read_shard
from munjang.bulk.shard_files import Block, make_files, read_checksummed, write_checksummed
from munjang.bulk.storage import Storage
from munjang.errors import Busy, DamagedFile, FolderError, InputError, MunjangError, NoSpace, TextError, UsageError, quote
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import DEFAULT_DEVICE, DEFAULT_ENGINE, Device, EngineName, Floats

_WAIT_SECONDS = 60
_AT_ONCE = 500


class EmbeddingCache:
    """The vectors of one job's model and settings; to be used by one thread."""

    def __init__(self, path: str | Path, job: BulkJob) -> None:
        settings = job.settings
        shaped = (settings.precision, settings.dimensions, settings.normalize, settings.prompt_name, settings.long_text)
        self._key = hashlib.sha256(repr((job.model.fingerprint, shaped)).encode()).digest()
        try:
            self._file = sqlite3.connect(str(path), timeout=_WAIT_SECONDS, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(model BLOB, text BLOB, dtype TEXT, vector BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            raise DamagedFile(f"{path}: is not an embedding cache ({error})\n  delete it; it will be created again") from None

    def find_known(self, texts: Sequence[str]) -> dict[str, Floats]:
        """Return the vectors of those texts that are in the cache."""
        by_hash = {_hash(text): text for text in texts}
        found: dict[str, Floats] = {}
        hashes = list(by_hash)
        for at in range(0, len(hashes), _AT_ONCE):
            part = hashes[at : at + _AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT text, dtype, vector FROM vectors WHERE model = ? AND text IN ({marks})"  # noqa: S608 - question marks only
            for hashed, dtype, vector in self._file.execute(query, (self._key, *part)):
                found[by_hash[hashed]] = np.frombuffer(vector, dtype=np.dtype(dtype))
        return found

    def keep(self, texts: Iterable[str], vectors_ND: Floats) -> None:
        """Remember vectors; equal texts of other processes do no harm."""
        dtype = vectors_ND.dtype.str
        rows = [(self._key, _hash(text), dtype, vector_D.tobytes()) for text, vector_D in zip(texts, vectors_ND, strict=True)]
        self._file.execute("BEGIN IMMEDIATE")
        try:
            self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", rows)
        finally:
            self._file.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


RECEIPTS, REJECTED = "receipts", "rejected"


@dataclass(frozen=True)
class _Made:
    """Vectors of distinct texts, and what it took."""

    vectors_ND: Floats
    encoded: int
    tokens: int
    too_long: dict[int, int]
    """Tokens of the texts that are longer than the model reads, by their place."""


def encode_shard(
    job: BulkJob, spec: ShardSpec, encoder: SentenceEncoder, storage: Storage, *, cache: EmbeddingCache | None = None
) -> Receipt:
    """Encode a shard, write its files, and return its receipt; a shard that is done is not done again."""
    done = find_receipt(storage, spec)
    if done is not None:
        return done
    started = time.perf_counter()
    file = job.inputs[spec.file]
    rows = read_shard(file, spec, job.settings)
    block, made = _make_block(job, spec, file, rows, encoder, cache)
    if rows.rejected:
        storage.write(f"{REJECTED}/{spec.stem}.jsonl", _write_rejected(rows.rejected))
    files = []
    for name, content in make_files(spec.stem, block, job).items():
        storage.write(name, content)
        files.append(WrittenFile(name, len(content), hashlib.sha256(content).hexdigest()))
    receipt = Receipt(
        shard=spec.number,
        rows=len(block.ids),
        rejected=len(rows.rejected),
        lines=rows.line_count,
        encoded=made.encoded,
        tokens=made.tokens,
        too_long=len(made.too_long),
        seconds=round(time.perf_counter() - started, 3),
        files=tuple(files),
    )
    storage.write(f"{RECEIPTS}/{spec.stem}.json", write_checksummed(asdict(receipt)))
    return receipt


def find_receipt(storage: Storage, spec: ShardSpec) -> Receipt | None:
    """Return the receipt of a shard that is done; None where it, or a file it speaks of, is missing."""
    name = f"{RECEIPTS}/{spec.stem}.json"
    content = storage.read(name)
    if content is None:
        return None
    receipt = read_receipt(content, f"{storage.place}/{name}")
    return receipt if all(storage.size(file.name) == file.bytes for file in receipt.files) else None


def read_receipt(content: bytes, where: str) -> Receipt:
    """Read a receipt's file."""
    return parse_receipt(read_checksummed(content, where=where, advice="remove it and continue with munjang bulk --resume"), where=where)


def _make_block(
    job: BulkJob, spec: ShardSpec, file: InputFile, rows: ShardRows, encoder: SentenceEncoder, cache: EmbeddingCache | None
) -> tuple[Block, _Made]:
    """Encode a shard's texts, equal ones once; with long_text="error" rows that are too long are rejected."""
    places = {text: place for place, text in enumerate(dict.fromkeys(rows.texts))}
    try:
        made = _encode_texts(job, list(places), encoder, cache)
    except MunjangError:
        raise
    except Exception as error:
        raise _locate(error, job, spec, file, rows, encoder) from error
    kept = list(range(len(rows.texts)))
    if job.settings.long_text == "error" and made.too_long:
        kept = [row for row in kept if places[rows.texts[row]] not in made.too_long]
        _reject_long(rows, places, made.too_long, encoder.max_length)
    index_N = np.array([places[rows.texts[row]] for row in kept], dtype=np.int64)
    texts = [rows.texts[row] for row in kept] if job.settings.keep_text else None
    return Block([rows.ids[row] for row in kept], made.vectors_ND[index_N], texts), made


def _encode_texts(job: BulkJob, texts: Sequence[str], encoder: SentenceEncoder, cache: EmbeddingCache | None) -> _Made:
    known = cache.find_known(texts) if cache is not None else {}
    unknown = [text for text in texts if text not in known]
    settings = job.settings
    found = settings.encode(encoder, unknown)
    tokens = found.tokens.tolist()
    place_of = {text: place for place, text in enumerate(texts)}
    too_long = {place_of[unknown[row]]: tokens[row] for row in found.too_long}
    if not known:
        vectors_ND = found.vectors
    else:
        vectors_ND = np.empty((len(texts), found.vectors.shape[1]), found.vectors.dtype)
        vectors_ND[[place_of[text] for text in unknown]] = found.vectors
        for text, vector_D in known.items():
            vectors_ND[place_of[text]] = vector_D
    if cache is not None:
        fits = [row for row, text in enumerate(unknown) if settings.long_text != "error" or place_of[text] not in too_long]
        cache.keep((unknown[row] for row in fits), found.vectors[fits])
    return _Made(vectors_ND, len(unknown), sum(tokens), too_long)


def _reject_long(rows: ShardRows, places: dict[str, int], too_long: dict[int, int], limit: int | None) -> None:
    for row, text in enumerate(rows.texts):
        tokens = too_long.get(places[text])
        if tokens is not None:
            rows.rejected.append(Rejected(rows.lines[row], rows.places[row], f"{tokens:,} tokens, the model's limit is {limit:,}"))
    rows.rejected.sort(key=lambda each: each.line)


def _write_rejected(rejected: Sequence[Rejected]) -> bytes:
    rows = ({"line": each.line, "place": each.place, "reason": each.reason} for each in rejected)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "backslashreplace")


def _locate(error: Exception, job: BulkJob, spec: ShardSpec, file: InputFile, rows: ShardRows, encoder: SentenceEncoder) -> MunjangError:
    """Return an error that names the row at which the model failed, found by halving."""
    low, high = 0, len(rows.texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _encode_texts(job, list(dict.fromkeys(rows.texts[low:middle])), encoder, None)
        except Exception:
            high = middle
        else:
            low = middle
    unit = "row" if file.format == "parquet" else "byte"
    return TextError(
        f"shard {spec.number}, {shorten_name(file.path)} {unit} {rows.places[low]:,}: the model failed on {quote(rows.texts[low])} "
        f"({type(error).__name__}: {quote(str(error), 200)})\n  take the row out and begin again in a new folder"
    )


_KINDS = {kind.__name__: kind for kind in (UsageError, InputError, TextError, FolderError, DamagedFile, Busy, NoSpace)}


@dataclass(frozen=True)
class ShardProblem:
    """Why a shard could not be done."""

    kind: str
    message: str

    def error(self) -> MunjangError:
        """Return it as the error it was, or as a plain one."""
        return _KINDS.get(self.kind, MunjangError)(self.message)


def run_shard(
    job: BulkJob, spec: ShardSpec, encoder: SentenceEncoder, storage: Storage, *, cache: EmbeddingCache | None = None
) -> Receipt | ShardProblem:
    """Try a shard; no error of ours or of the disk escapes."""
    try:
        return encode_shard(job, spec, encoder, storage, cache=cache)
    except Exception as error:
        return describe_problem(
            error, where=f"shard {spec.number}, {shorten_name(job.inputs[spec.file].path)} from {spec.start:,} to {spec.stop:,}"
        )


def describe_problem(error: Exception, *, where: str) -> ShardProblem:
    """Return an error as data; what is not an error of ours says where it happened."""
    if isinstance(error, MunjangError):
        message = str(error)
        return ShardProblem(type(error).__name__, message if message.startswith("shard ") else f"{where}: {message}")
    return ShardProblem("MunjangError", f"{where}: {type(error).__name__}: {quote(str(error), 300)}")


def load_model(
    model: Model, settings: BulkSettings, *, threads: int | None, device: Device = DEFAULT_DEVICE, engine: EngineName = DEFAULT_ENGINE
) -> SentenceEncoder:
    """Load a job's model on this machine and make sure that it is the same model."""
    name = model.path if Path(model.path).is_dir() else model.name
    encoder = SentenceEncoder.load(name, compute=settings.compute, pooling=settings.pooling, threads=threads, device=device, engine=engine)
    if encoder.fingerprint != model.fingerprint:
        raise FolderError(
            f"the model {quote(name)} has the fingerprint {encoder.fingerprint[:12]} here, the job's has {model.fingerprint[:12]}\n"
            "  put the same model folder on every machine"
        )
    return encoder


def to_line(outcome: Receipt | ShardProblem) -> str:
    """Return an outcome as one line of JSON."""
    return json.dumps({"problem" if isinstance(outcome, ShardProblem) else "receipt": asdict(outcome)}, ensure_ascii=True)
