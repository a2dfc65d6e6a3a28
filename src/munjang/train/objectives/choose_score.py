"""The shape of the data → the loss of a cross-encoder that fits it, with the reason in one sentence.

In: how many text columns there are and what kind of label. Out: a name for `make_score_loss`. A recipe that names a loss never comes here.
"""

from __future__ import annotations

from munjang.errors import UsageError
from munjang.train.objectives.choose import Choice, DataShape, refuse_one_label


def choose_score_loss(shape: DataShape) -> Choice:
    """Return the loss for data of this shape; data that can teach nothing is refused.

    >>> choose_score_loss(DataShape(columns=2, label_kind="class", classes=3)).name
    'cross_entropy'
    """
    refuse_one_label(shape)
    if shape.columns < 2:
        raise UsageError("the data has one text column, and a cross-encoder scores pairs\n  add a second column")
    if shape.label_kind == "margins":
        return Choice("margin_mse", "lists carry a teacher's scores, so the model learns its margins")
    if shape.columns > 2:
        return Choice(
            "multiple_negatives", "rows are a query, its answer and texts that are none, so the answer must win over the row's others"
        )
    if shape.label_kind == "class":
        return Choice(
            "cross_entropy", f"pairs are labelled with {shape.classes or 'several'} classes, so each class has a score of its own"
        )
    if shape.label_kind == "score":
        return Choice("mse", "pairs carry graded scores, so one number learns them by regression, as the paper's BERT does")
    if shape.label_kind == "binary":
        return Choice("bce", "pairs match or do not, so one number learns the probability that they do")
    return Choice(
        "multiple_negatives", "pairs without labels are taken as matches, so the answer must win over random answers of other rows"
    )
