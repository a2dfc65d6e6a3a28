"""A condition and a store → the keys that no document has, in words: a filter with a slip finds nothing, or everything, and looks right.

A key that some document has costs one look at the first of them, once a commit; all keys are read only to say what was meant.
"""

from __future__ import annotations

from difflib import get_close_matches

from munjang.errors import shown
from munjang.library.store import Store
from munjang.library.where import OWN_KEYS, Condition, keys_of

MOST_KEYS = 10_000
"""Keys that are looked through for the one that was meant."""
LISTED_KEYS = 8


class UnknownKeyWarning(UserWarning):
    """A filter asks for a metadata key that no document of the library has."""


class KnownKeys:
    """Remembers which keys the documents of a store have, for as long as nothing is committed; safe from many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[int, frozenset[str]] = (-1, frozenset())

    def name_unknown(self, where: Condition) -> list[str]:
        """Return a sentence for each key of the filter that no document has; none in a library without documents."""
        generation = self._store.generation()
        known = self._seen[1] if self._seen[0] == generation else frozenset()
        asked = [key for key in keys_of(where) if key not in OWN_KEYS and key not in known]
        unknown = [key for key in asked if not self._store.has_key(key)]
        self._seen = (generation, known.union(asked).difference(unknown))
        if not unknown or not self._store.count()[0]:
            return []
        keys = self._store.keys(MOST_KEYS)
        return [f"no document has the metadata key {shown(key)}; {_meant(key, keys)}" for key in unknown]


def _meant(key: str, keys: list[str]) -> str:
    near = get_close_matches(key.lower(), [each.lower() for each in keys], n=1)
    meant = next((each for each in keys if near and each.lower() == near[0]), None)
    if meant is not None:
        return f"did you mean {shown(meant)}?"
    listed = ", ".join(map(shown, keys[:LISTED_KEYS])) + (" …" if len(keys) > LISTED_KEYS else "")
    return f"there are: {listed}" if keys else "no document has any metadata"
