"""One shard → its files and its receipt. Doing it again, anywhere, by anyone, gives the same bytes, so nobody has to agree on who does it.

Order of writing: rejected rows, vectors, receipt. Each file is whole or not there, and the receipt comes last: where it is, the rest is.

The batches a text is encoded in follow from the shard alone, not from threads or workers; that is why outputs are byte-equal.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from munjang.bulk.cache import EmbeddingCache
from munjang.bulk.job import InputFile, Job, Receipt, ShardSpec, WrittenFile, receipt_from
from munjang.bulk.opening import short_name
from munjang.bulk.read_shard import Rejected, ShardRows, read_shard
from munjang.bulk.shard_files import Block, files_of
from munjang.bulk.storage import Storage
from munjang.bulk.summed import from_summed, to_summed
from munjang.errors import MunjangError, TextError, shown
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import Floats

RECEIPTS, REJECTED = "receipts", "rejected"


@dataclass(frozen=True)
class _Made:
    """Vectors of distinct texts, and what it took."""

    vectors_ND: Floats
    encoded: int
    tokens: int
    too_long: dict[int, int]
    """Tokens of the texts that are longer than the model reads, by their place."""


def encode_shard(job: Job, spec: ShardSpec, encoder: SentenceEncoder, storage: Storage, *, cache: EmbeddingCache | None = None) -> Receipt:
    """Encode a shard, write its files, and return its receipt; a shard that is done is not done again."""
    done = find_receipt(storage, spec)
    if done is not None:
        return done
    started = time.perf_counter()
    file = job.inputs[spec.file]
    rows = read_shard(file, spec, job.settings)
    block, made = _block(job, spec, file, rows, encoder, cache)
    if rows.rejected:
        storage.write(f"{REJECTED}/{spec.stem}.jsonl", _rejected_lines(rows.rejected))
    files = []
    for name, content in files_of(spec.stem, block, job).items():
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
    storage.write(f"{RECEIPTS}/{spec.stem}.json", to_summed(asdict(receipt)))
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
    return receipt_from(from_summed(content, where=where, advice="remove it and continue with munjang bulk --resume"), where=where)


def _block(
    job: Job, spec: ShardSpec, file: InputFile, rows: ShardRows, encoder: SentenceEncoder, cache: EmbeddingCache | None
) -> tuple[Block, _Made]:
    """Encode a shard's texts, equal ones once; with long_text="error" rows that are too long are rejected."""
    places = {text: place for place, text in enumerate(dict.fromkeys(rows.texts))}
    try:
        made = _encoded(job, list(places), encoder, cache)
    except MunjangError:
        raise
    except Exception as error:
        raise _located(error, job, spec, file, rows, encoder) from error
    kept = list(range(len(rows.texts)))
    if job.settings.long_text == "error" and made.too_long:
        kept = [row for row in kept if places[rows.texts[row]] not in made.too_long]
        _reject_long(rows, places, made.too_long, encoder.max_length)
    index_N = np.array([places[rows.texts[row]] for row in kept], dtype=np.int64)
    texts = [rows.texts[row] for row in kept] if job.settings.keep_text else None
    return Block([rows.ids[row] for row in kept], made.vectors_ND[index_N], texts), made


def _encoded(job: Job, texts: Sequence[str], encoder: SentenceEncoder, cache: EmbeddingCache | None) -> _Made:
    known = cache.known(texts) if cache is not None else {}
    unknown = [text for text in texts if text not in known]
    settings = job.settings
    found = encoder.encode_with_report(
        unknown,
        prompt_name=settings.prompt_name,
        long_text="truncate" if settings.long_text == "error" else settings.long_text,
        precision=settings.precision,
        dimensions=settings.dimensions,
        normalize=settings.normalize,
    )
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


def _rejected_lines(rejected: Sequence[Rejected]) -> bytes:
    rows = ({"line": each.line, "place": each.place, "reason": each.reason} for each in rejected)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "backslashreplace")


def _located(error: Exception, job: Job, spec: ShardSpec, file: InputFile, rows: ShardRows, encoder: SentenceEncoder) -> MunjangError:
    """Return an error that names the row at which the model failed, found by halving."""
    low, high = 0, len(rows.texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _encoded(job, list(dict.fromkeys(rows.texts[low:middle])), encoder, None)
        except Exception:
            high = middle
        else:
            low = middle
    unit = "row" if file.format == "parquet" else "byte"
    return TextError(
        f"shard {spec.number}, {short_name(file.path)} {unit} {rows.places[low]:,}: the model failed on {shown(rows.texts[low])} "
        f"({type(error).__name__}: {shown(str(error), 200)})\n  take the row out and begin again in a new folder"
    )
