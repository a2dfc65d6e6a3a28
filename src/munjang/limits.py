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

    batch_tokens: int = 1_024
    """Tokens that one run of the engine gets. Larger batches fall out of the processor's cache and are slower."""

    efficient_tokens: int = 256
    """Tokens from which a batch of one length is worth a run of its own."""

    stream_texts: int = 16_384
    """Texts of an iterator that are held at once."""


LIMITS = Limits()


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not have it
        return os.cpu_count() or 1
