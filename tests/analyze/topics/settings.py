"""Settings as `fit_topics` makes them, some changed."""

from __future__ import annotations

from typing import Any

from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import TopicSettings
from munjang.options import declared_options


def topic_settings(**changes: Any) -> TopicSettings:
    """Return the default settings with some changed."""
    return TopicSettings(**{name: each.default for name, each in declared_options(fit_topics).items()} | changes)
