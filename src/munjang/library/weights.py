"""How much words and tokens weigh in the searches of a library: built in, or chosen for it by `munjang tune` and stored with it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from munjang.errors import DamagedFile
from munjang.library.late import WEIGHT, WEIGHT_AFTER_MEANING
from munjang.library.ranking import Hybrid
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class SearchWeights:
    """The weights of a library's searches."""

    words: float = Hybrid.words
    """Of words, beside meaning, which has 1."""
    tokens: float = WEIGHT
    """Of token vectors after words and meaning; the rest goes to the first stage."""
    tokens_after_meaning: float = WEIGHT_AFTER_MEANING
    """Of token vectors after meaning alone."""

    def to_text(self) -> str:
        """Return the weights as a library stores them."""
        return json.dumps(asdict(self))


def read_weights(text: str | None, *, name: str) -> SearchWeights:
    """Return the weights that a library stores; the built-in ones where it stores none.

    >>> read_weights(None, name="a.db") == SearchWeights()
    True
    """
    if text is None:
        return SearchWeights()
    try:
        weights = SearchWeights(**{key: float(value) for key, value in json.loads(text).items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{name}: the weights of its searches cannot be read\n  run munjang tune, or restore it from a copy") from error
    if not (0 <= weights.words < float("inf") and 0 <= weights.tokens <= 1 and 0 <= weights.tokens_after_meaning <= 1):
        raise DamagedFile(f"{name}: the weights of its searches are out of bounds\n  run munjang tune, or restore it from a copy")
    return weights
