"""The shape of the data → the loss of a cross-encoder that fits it, with the reason in one sentence.

In: how many text columns there are and what kind of label. Out: a name for `make_score_loss`. A recipe that names a loss never comes here.
"""

from __future__ import annotations

from munjang.errors import UsageError
from munjang.report.words import Message, Word
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
        return Choice("margin_mse", Message(Word.CHOSEN_LIST_MARGINS))
    if shape.columns > 2:
        return Choice("multiple_negatives", Message(Word.CHOSEN_LISTS))
    if shape.label_kind == "class":
        return Choice("cross_entropy", Message(Word.CHOSEN_PAIR_CLASSES, classes=shape.classes or Message(Word.SEVERAL)))
    if shape.label_kind == "score":
        return Choice("mse", Message(Word.CHOSEN_PAIR_SCORES))
    if shape.label_kind == "binary":
        return Choice("bce", Message(Word.CHOSEN_PAIR_BINARY))
    return Choice("multiple_negatives", Message(Word.CHOSEN_PAIR_MATCHES))
