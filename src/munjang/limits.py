"""Every number that bounds work, in one place, so that a reader can see what Munjang will and will not do."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on what is read, held and computed. Replace one with `dataclasses.replace(LIMITS, …)`."""

    max_text_bytes: int = 16 * 2**20
    """One text, as UTF-8. Longer texts are refused, not cut."""

    max_id_bytes: int = 1_024
    """One document's id, as UTF-8."""

    max_metadata_bytes: int = 2**20
    """One document's metadata, as JSON."""

    max_word_characters: int = 1_000
    """A run without white space longer than this is tokenised in pieces of this size, so that a tokenizer cannot go quadratic."""

    max_line_bytes: int = 64 * 2**20
    """One line of an input file."""

    max_columns: int = 16_384
    """Columns of a table, and keys of one JSON object in a file."""

    max_dataset_bytes: int = 2 * 2**30
    """One evaluation file that must be read whole (a JSON list, SQuAD JSON, XML), after decompression."""

    max_config_bytes: int = 4 * 2**20
    """One JSON configuration file of a model folder."""

    max_tokenizer_bytes: int = 256 * 2**20
    """One tokenizer file."""

    max_weights_header_bytes: int = 64 * 2**20
    """The JSON header of one safetensors file."""

    max_weights_bytes: int = 16 * 2**30
    """One safetensors file."""

    batch_tokens: int = 512
    """Tokens that one run of the engine gets. Larger batches fall out of the processor's cache and are slower."""

    efficient_tokens: int = 256
    """Tokens from which a batch of one length is worth a run of its own."""

    stream_texts: int = 16_384
    """Texts of an iterator that are held at once."""

    stream_token_texts: int = 256
    """The same where every token has a vector."""


LIMITS = Limits()


@dataclass(frozen=True)
class DocumentLimits:
    """Bounds on the process that parses documents (PDF, Office, HWP …), for each file."""

    seconds: float = 60.0
    """From the question to the answer."""

    memory_bytes: int = 2 * 2**30
    """Memory of the process, where the system can bound it."""

    file_bytes: int = 512 * 2**20
    """The file itself."""

    text_characters: int = 32 * 2**20
    """The text that is read from it."""

    answer_bytes: int = 256 * 2**20
    """What the process may write for it, places included."""


DOCUMENT_LIMITS = DocumentLimits()


@dataclass(frozen=True)
class ServeLimits:
    """Bounds on what the server takes, holds and waits for."""

    max_body_bytes: int = 8 * 2**20
    """One request's JSON."""

    max_upload_bytes: int = 256 * 2**20
    """One uploaded file."""

    max_held_upload_bytes: int = 512 * 2**20
    """Uploaded files of all clients together that are on disk at once: those on their way, those that wait and the one that is read."""

    max_unpacked_bytes: int = 8 * 2**30
    """What an uploaded file may hold once it is unpacked."""

    upload_memory_bytes: int = 4 * 2**30
    """Memory of the process that reads an uploaded file, where the system can bound it."""

    upload_cpu_seconds: int = 900
    """Processor time of that process."""

    max_held_bytes: int = 128 * 2**20
    """Bodies of all requests together that are in memory at once."""

    max_json_depth: int = 32
    """Lists and objects inside one another."""

    max_json_keys: int = 16_384
    """Keys of one object."""

    max_header_bytes: int = 32 * 2**10
    """The request line and all headers of one request."""

    max_connections: int = 1_000
    """Connections that are open at once."""

    spare_connections: int = 64
    """Connections beyond these that are still answered: /health, /ping and /metrics as always, everything else with a refusal."""

    max_texts: int = 2_048
    """Texts of one request for vectors or scores."""

    max_token_texts: int = 32
    """Texts of one request for the vectors of every token."""

    max_tokenized_characters: int = 200_000
    """Characters of one request for the tokens themselves, whose answer is many times larger."""

    max_analysed_texts: int = 5_000
    """Texts of one request for pairs, clusters, topics and the like."""

    max_matrix_cells: int = 1_000_000
    """Scores in one matrix."""

    max_hits: int = 1_000
    """Hits of one search."""

    max_records: int = 10_000
    """Records of one request that adds to a library; a file may hold more."""

    waiting_tokens: int = 16_384
    """Tokens of one client that may stand before a request of the same client; one that finds as many is refused."""

    waiting_texts: int = 8_192
    """Texts of all clients that may wait for a processor. When as many do, only requests no larger than an equal share are accepted."""

    wait_seconds: float = 10.0
    """For a request to get its first turn. One whose answer would have to wait longer is refused."""

    waiting_calls: int = 64
    """Searches and the like of one client that may wait for a thread."""

    waiting_analyses: int = 8
    """Analyses of collections of one client that may wait for their turn."""

    waiting_writes: int = 256
    """Requests of one client that may wait for their turn to change a library."""

    waiting_uploads: int = 8
    """Uploads that may wait for their turn."""

    head_seconds: float = 10.0
    """From the first byte of a request to the end of its headers."""

    body_seconds: float = 10.0
    """From the end of the headers to the end of the body, and one second more for every `body_rate` bytes that have come."""

    body_rate: int = 16 * 2**10
    """Bytes a second that a body must come with, after its first seconds."""

    send_seconds: float = 30.0
    """For a client to take one piece of an answer."""

    idle_seconds: int = 30
    """A connection without a request."""

    stop_seconds: float = 30.0
    """From the signal to the end of the server, whatever it is doing; accepted requests have three quarters of it to finish."""


SERVE_LIMITS = ServeLimits()


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not have it
        return os.cpu_count() or 1
