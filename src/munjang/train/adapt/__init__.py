"""Domain adaptation: a model learns from plain text alone. The closed table of its objectives, and a vocabulary that can grow."""

from __future__ import annotations

from collections.abc import Mapping

from munjang.train.adapt.mlm import Mlm
from munjang.train.adapt.text_objective import SimCse
from munjang.train.adapt.tsdae import Tsdae
from munjang.train.objectives.base import Objective

TEXT_OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in (Mlm, Tsdae, SimCse)}
"""These learn from rows of one text without a label."""


def make_text_objective(name: str, settings: Mapping[str, object]) -> Objective:
    """Return the objective called `name`; a wrong setting is a UsageError.

    >>> make_text_objective("simcse", {}).describe()
    'unsupervised SimCSE, each text twice with dropout, cosine / 0.05'
    """
    return TEXT_OBJECTIVES[name].build(settings, dimension=0, num_labels=None)
