"""A share of a job: every n-th shard. So n runs that know nothing of each other, on n machines, do all of it.

Which shards a share has follows from the plan alone, and the plan from the files and settings. So shares may start in any order, at once or
twice, and be killed and started again: whoever comes first writes down the job, whoever comes later reads it, and a shard that is done
twice is written with the same bytes twice. Each share leaves a mark in `shares/` when it starts, for whoever looks for what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from munjang.bulk.job import ShardSpec
from munjang.bulk.storage import Storage
from munjang.errors import UsageError, quote

_SHARES = "shares"
_MARK = re.compile(r"(?P<number>\d{1,9})-of-(?P<count>\d{1,9})")
_WRITTEN = re.compile(r"(?P<number>\d{1,9})/(?P<count>\d{1,9})")


@dataclass(frozen=True, order=True)
class Share:
    """One of `count` runs, counted from 1."""

    count: int
    number: int

    def __str__(self) -> str:
        """Return the share as it is written.

        >>> str(read_share("3/16"))
        '3/16'
        """
        return f"{self.number}/{self.count}"

    def select(self, specs: Iterable[ShardSpec]) -> list[ShardSpec]:
        """Return the shards of this share.

        >>> specs = [ShardSpec(number, 0, number, number + 1) for number in range(7)]
        >>> [spec.number for spec in read_share("2/3").select(specs)]
        [1, 4]
        """
        return [spec for spec in specs if spec.number % self.count == self.number - 1]


def read_share(text: str) -> Share:
    """Read a share as it is written, such as 3/16."""
    found = _WRITTEN.fullmatch(text)
    share = None if found is None else Share(int(found["count"]), int(found["number"]))
    if share is None or not 1 <= share.number <= share.count:
        raise UsageError(f"the share is {quote(text)}, expected one from 1/N to N/N, such as 3/16")
    return share


def mark_share(storage: Storage, share: Share) -> None:
    """Leave a mark that a share was started."""
    storage.write(f"{_SHARES}/{share.number}-of-{share.count}", b"\n")


def has_shares(storage: Storage) -> bool:
    """Say whether a job was begun, or continued, in shares."""
    return bool(storage.sizes(_SHARES))


def list_shares(storage: Storage, missing: Sequence[int]) -> list[str]:
    """Return the shares that have shards among the missing ones, by the largest number of shares that were started together."""
    marks = [found for name in storage.sizes(_SHARES) if (found := _MARK.fullmatch(name))]
    if not marks:
        return []
    count = max(int(mark["count"]) for mark in marks)
    return [str(Share(count, number)) for number in sorted({shard % count + 1 for shard in missing})]
