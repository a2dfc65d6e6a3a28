"""One try at a shard, with its end as data: a receipt, or what went wrong, in a form that passes through a pipe or a scheduler."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from munjang import errors
from munjang.bulk.cache import EmbeddingCache
from munjang.bulk.job import Job, Model, Receipt, ShardSpec
from munjang.bulk.opening import short_name
from munjang.bulk.settings import BulkSettings
from munjang.bulk.shard import encode_shard
from munjang.bulk.storage import Storage
from munjang.errors import FolderError, MunjangError, shown
from munjang.models.sentence_encoder import SentenceEncoder

_KINDS = {
    kind.__name__: kind
    for kind in (
        errors.UsageError,
        errors.InputError,
        errors.TextError,
        errors.FolderError,
        errors.DamagedFile,
        errors.Busy,
        errors.NoSpace,
    )
}


@dataclass(frozen=True)
class Problem:
    """Why a shard could not be done."""

    kind: str
    message: str

    def error(self) -> MunjangError:
        """Return it as the error it was, or as a plain one."""
        return _KINDS.get(self.kind, MunjangError)(self.message)


def attempt(
    job: Job, spec: ShardSpec, encoder: SentenceEncoder, storage: Storage, *, cache: EmbeddingCache | None = None
) -> Receipt | Problem:
    """Try a shard; no error of ours or of the disk escapes."""
    try:
        return encode_shard(job, spec, encoder, storage, cache=cache)
    except Exception as error:
        return problem_of(
            error, where=f"shard {spec.number}, {short_name(job.inputs[spec.file].path)} from {spec.start:,} to {spec.stop:,}"
        )


def problem_of(error: Exception, *, where: str) -> Problem:
    """Return an error as data; what is not an error of ours says where it happened."""
    if isinstance(error, MunjangError):
        message = str(error)
        return Problem(type(error).__name__, message if message.startswith("shard ") else f"{where}: {message}")
    return Problem("MunjangError", f"{where}: {type(error).__name__}: {shown(str(error), 300)}")


def load_model(model: Model, settings: BulkSettings, *, threads: int | None) -> SentenceEncoder:
    """Load a job's model on this machine and make sure that it is the same model."""
    name = model.path if Path(model.path).is_dir() else model.name
    encoder = SentenceEncoder.load(name, compute=settings.compute, pooling=settings.pooling, threads=threads)
    if encoder.fingerprint != model.fingerprint:
        raise FolderError(
            f"the model {shown(name)} has the fingerprint {encoder.fingerprint[:12]} here, the job's has {model.fingerprint[:12]}\n"
            "  put the same model folder on every machine"
        )
    return encoder


def to_line(outcome: Receipt | Problem) -> str:
    """Return an outcome as one line of JSON."""
    return json.dumps({"problem" if isinstance(outcome, Problem) else "receipt": asdict(outcome)}, ensure_ascii=True)
