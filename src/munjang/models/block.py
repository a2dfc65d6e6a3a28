"""A block of texts → their vectors, in the caller's order.

In: texts, and what the call of encode asks for. Out: `Encoded`. Equal texts are encoded once; each is tokenised, made to fit the model's
limit, and run with others of like length. Going through many blocks, and warning of texts that were cut, are left to `SentenceEncoder`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.open import Engine
from munjang.models.encoded import Encoded, EncodeOptions, average_windows
from munjang.models.long_text import fit
from munjang.models.progress import Advance
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer
from munjang.types import Vectors
from munjang.vectors.quantize import quantize
from munjang.vectors.similarity import normalize as unit


@dataclass(frozen=True)
class BlockEncoder:
    """Encodes blocks of texts with one model."""

    tokenizer: Tokenizer
    engine: Engine
    max_length: int | None
    is_static: bool
    """A static model reads no special tokens."""
    lowercase: bool
    normalized: bool
    """Whether the model gives vectors of length one, so that an average of windows must have it too."""

    def encode(self, texts: list[str], options: EncodeOptions, advance: Advance) -> Encoded:
        """Return the vector of each text; `advance` hears of every batch that is done."""
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        index = np.fromiter((place[text] for text in texts), np.int64, len(texts))
        ids = self.token_ids([options.prompt + text for text in place] if options.prompt else list(place))
        pieces = fit(ids, self.tokenizer, limit=self.max_length, policy=options.long_text)
        vectors = self._vectors(pieces.ids, options, advance, share=len(texts) / len(pieces.ids))
        if len(pieces.ids) > len(ids):
            vectors = average_windows(vectors, pieces.ids, pieces.owner, len(ids), normalized=self.normalized)
        if options.dimensions:
            vectors = vectors[:, : options.dimensions]
        if options.normalize:
            vectors = unit(vectors)
        lengths = np.fromiter((len(one) for one in ids), np.int64, len(ids))
        long = set(pieces.too_long)
        return Encoded(
            vectors=quantize(vectors[index], options.precision),
            tokens=lengths[index],
            too_long=[number for number, owner in enumerate(index.tolist()) if owner in long] if long else [],
        )

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        """Return each text's ids as the model reads them, before any cut."""
        if self.lowercase:
            texts = [text.lower() for text in texts]
        return self.tokenizer.encode_plain(texts) if self.is_static else self.tokenizer.encode(texts)

    def _vectors(self, ids: list[list[int]], options: EncodeOptions, advance: Advance, *, share: float) -> Vectors:
        """Return one row per piece; `share` is how many of the caller's texts a piece stands for."""
        vectors = np.zeros((len(ids), self.engine.dimension), np.float32)
        batches = plan_batches([len(one) for one in ids])
        if not self.is_static:
            batches = [kept for batch in batches if (kept := [number for number in batch if ids[number]])]
        groups = [[ids[number] for number in batch] for batch in batches]
        for batch, rows in zip(batches, self.engine.vectors_of_batches(groups, hidden_prefix=options.hidden_prefix), strict=True):
            vectors[batch] = rows
            advance(round(len(batch) * share))
        return vectors
