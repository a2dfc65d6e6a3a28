"""Tuning a body by labels: the loss is the published one, labels move together, and a classifier keeps a body only where it helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from tests.cli.conftest import munjang as munjang  # noqa: E402

from munjang.errors import InputError  # noqa: E402
from munjang.train.tune_labels import TuneSettings, draw_batch, supervised_contrastive_loss, tune_body  # noqa: E402

WORDS = (("rain", "snow", "winter", "river"), ("cat", "dog", "sleep", "coffee"), ("train", "book", "sun", "was"))
PAIRS = [(f"{a} {b}", label) for label, words in enumerate(WORDS) for a in words for b in words if a != b]
TEXTS, LABELS = [text for text, _ in PAIRS], [label for _, label in PAIRS]


def test_the_loss_is_that_of_the_paper_written_out() -> None:
    torch.manual_seed(0)
    vectors, labels = torch.randn(6, 4), torch.tensor([0, 0, 1, 1, 1, 2])
    unit = torch.nn.functional.normalize(vectors, dim=1)
    losses = []
    for row in range(5):  # the last one is alone
        others = [other for other in range(6) if other != row]
        total = torch.logsumexp(torch.stack([unit[row] @ unit[other] / 0.1 for other in others]), 0)
        same = [other for other in others if labels[other] == labels[row]]
        losses.append(-torch.stack([unit[row] @ unit[other] / 0.1 - total for other in same]).mean())
    assert float(supervised_contrastive_loss(vectors, labels, 0.1)) == pytest.approx(float(torch.stack(losses).mean()), rel=1e-5)
    assert float(supervised_contrastive_loss(vectors[:2], torch.tensor([0, 1]), 0.1)) == 0


def test_a_batch_holds_every_label_as_often_as_it_can() -> None:
    labels = np.array([0] * 50 + [1] * 3 + [2])
    drawn = labels[draw_batch(labels, 10, np.random.default_rng(0))]
    assert [(drawn == label).sum() for label in range(3)] == [6, 3, 1]


def test_labels_move_together_and_the_seed_decides(tiny_bert_folder: Path) -> None:
    settings = TuneSettings(passes=30, learning_rate=1e-3)
    tuned = tune_body(tiny_bert_folder, TEXTS, LABELS, settings=settings)
    again = tune_body(tiny_bert_folder, TEXTS, LABELS, settings=settings)
    assert tuned.fingerprint == again.fingerprint
    labels = torch.tensor(LABELS)
    before = tune_body(tiny_bert_folder, TEXTS, LABELS, settings=TuneSettings(passes=0, learning_rate=0.0))
    loss = [float(supervised_contrastive_loss(torch.as_tensor(each.encode(TEXTS)), labels, 0.1)) for each in (before, tuned)]
    assert loss[1] < loss[0]
    with pytest.raises(InputError, match="at least two"):
        tune_body(tiny_bert_folder, ["a"], [0])


@pytest.mark.slow
def test_fit_says_whether_tuning_helped_and_keeps_the_body_only_then(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import munjang.cli.classify_tune as classify_tune

    rows = ["text,label", *(f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True))]
    (tmp_path / "examples.csv").write_text("\n".join(rows), encoding="utf-8")
    monkeypatch.setattr(classify_tune, "_predict", lambda texts, gold_N, rows_ND, outside, inside: gold_N[inside])  # no difference
    command = ["classify", "fit", tmp_path / "examples.csv", "-o", tmp_path / "made", "--tune", "--json", "-m", tiny_bert_folder]
    refused = munjang(*command).json
    assert refused["tune"]["kept"] is False
    assert not list((tmp_path / "made").glob("body-*"))
    better = classify_tune.TuneOutcome(kept=True, frozen_accuracy=0.5, tuned_accuracy=0.9, mended=9, broken=0, p=0.002)
    monkeypatch.setattr(classify_tune, "compare_tuned", lambda *_, **__: better)
    assert munjang(*command).json["tune"] == better.facts()
    assert len(list((tmp_path / "made").glob("body-*"))) == 1
    applied = munjang("classify", "apply", tmp_path / "made", tmp_path / "examples.csv", "-o", tmp_path / "out.csv", "--json")
    assert applied.code == 0, applied.err
    assert applied.json["rows"] == len(rows) - 1
