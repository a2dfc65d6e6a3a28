"""Tuning a body by labels: the loss is the published one, labels move together, and a classifier keeps a body only where it helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from tests.cli.conftest import munjang as munjang  # noqa: E402

from munjang import (  # noqa: E402
    SentenceEncoder,
    apply_classifier,
    fit_tuned_classifier,
    load_classifier,
    save_classifier,
)
from munjang.errors import InputError  # noqa: E402
from munjang.train.tune_labels import BodyTuner, TuneSettings, draw_batch, supervised_contrastive_loss, tune_body  # noqa: E402

WORDS = (("rain", "snow", "winter", "river"), ("cat", "dog", "sleep", "coffee"), ("train", "book", "sun", "was"))
PAIRS = [(f"{a} {b}", label) for label, words in enumerate(WORDS) for a in words for b in words if a != b]
TEXTS, LABELS = [text for text, _ in PAIRS], [label for _, label in PAIRS]
TARGET = np.eye(3, dtype=bool)[LABELS]


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
    target = torch.eye(3)[labels]
    assert float(supervised_contrastive_loss(vectors, target, 0.1)) == pytest.approx(float(torch.stack(losses).mean()), rel=1e-5)
    assert float(supervised_contrastive_loss(vectors[:2], torch.eye(2), 0.1)) == 0
    shared = torch.tensor([[1.0, 1.0], [1.0, 0.0]])  # one label of two is enough
    assert float(supervised_contrastive_loss(vectors[[0, 1, 5]], torch.cat([shared, torch.zeros(1, 2)]), 0.1)) > 0


def test_a_batch_holds_every_label_as_often_as_it_can() -> None:
    labels = np.array([0] * 50 + [1] * 3 + [2])
    drawn = labels[draw_batch(labels, 10, np.random.default_rng(0))]
    assert [(drawn == label).sum() for label in range(3)] == [6, 3, 1]


def test_labels_move_together_and_the_seed_decides(tiny_bert_folder: Path) -> None:
    settings = TuneSettings(passes=30, learning_rate=1e-3)
    tuned = tune_body(tiny_bert_folder, TEXTS, TARGET, settings=settings)
    again = tune_body(tiny_bert_folder, TEXTS, TARGET, settings=settings)
    assert tuned.fingerprint == again.fingerprint
    target = torch.as_tensor(TARGET, dtype=torch.float32)
    before = tune_body(tiny_bert_folder, TEXTS, TARGET, settings=TuneSettings(passes=0, learning_rate=0.0))
    loss = [float(supervised_contrastive_loss(torch.as_tensor(each.encode(TEXTS)), target, 0.1)) for each in (before, tuned)]
    assert loss[1] < loss[0]
    with pytest.raises(InputError, match="at least two"):
        tune_body(tiny_bert_folder, ["a"], np.array([[True, False]]))


class Nothing:
    """A tuner that changes nothing, or puts the labels themselves into the vectors."""

    def __init__(self, folder: Path, *, better: bool) -> None:
        self.body, self.better, self.tuned = BodyTuner(folder, TuneSettings(passes=0, learning_rate=0.0)), better, 0

    def tune(self, texts: Sequence[str], target_NC: np.ndarray, /, *, seed: int) -> Any:
        self.tuned += 1
        made = self.body.tune(texts, target_NC, seed=seed)
        if self.better and len(texts) < len(TEXTS):
            made.encode = lambda _: np.eye(3, dtype=np.float32)[LABELS]
        return made

    def save(self, body: Any, folder: Path, /) -> Any:
        return self.body.save(body, folder)


def test_a_tuned_body_is_kept_only_where_it_labels_held_out_rows_better(tiny_bert_folder: Path, tmp_path: Path) -> None:
    frozen = SentenceEncoder.load(tiny_bert_folder)
    same = fit_tuned_classifier(TEXTS, LABELS, frozen, Nothing(tiny_bert_folder, better=False), tmp_path / "same", strength=10.0)
    assert not same.outcome.kept
    assert same.classifier.encoder == frozen.fingerprint
    assert not (tmp_path / "same").exists()
    tuner = Nothing(tiny_bert_folder, better=True)
    better = fit_tuned_classifier(TEXTS, LABELS, frozen, tuner, tmp_path / "better", strength=10.0)
    assert better.outcome.kept
    assert better.outcome.tuned_accuracy == 1 > better.outcome.frozen_accuracy
    assert tuner.tuned == 4  # three folds, and all examples
    save_classifier(better.classifier, tmp_path / "better")
    loaded = load_classifier(tmp_path / "better")
    assert Path(loaded.encoder_name).parent == tmp_path / "better"
    assert len(apply_classifier(loaded, TEXTS[:3], SentenceEncoder.load(loaded.encoder_name).with_prompt())) == 3


def test_a_label_with_two_examples_can_be_tuned_with(tiny_bert_folder: Path, tmp_path: Path) -> None:
    labels = ["many"] * (len(TEXTS) - 2) + ["few"] * 2
    for seed in range(3):  # both of the few were in one fold of three with some seeds
        made = fit_tuned_classifier(
            TEXTS,
            labels,
            SentenceEncoder.load(tiny_bert_folder),
            Nothing(tiny_bert_folder, better=False),
            tmp_path,
            strength=1.0,
            seed=seed,
        )
        assert made.outcome.frozen_accuracy > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("multi", [False, True])
def test_the_command_tunes_and_its_classifier_is_applied(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, multi: bool
) -> None:
    rows = ["text,label", *(f"{text},{label}{';rare' if multi and label else ''}" for text, label in zip(TEXTS, LABELS, strict=True))]
    (tmp_path / "examples.csv").write_text("\n".join(rows), encoding="utf-8")
    more = ["--multi"] if multi else []
    command = ["classify", "fit", tmp_path / "examples.csv", "-o", tmp_path / "made", "--tune", "--json", "-m", tiny_bert_folder]
    outcome = munjang(*command, *more)
    assert outcome.code == 0, outcome.err
    assert outcome.json["tune"]["kept"] == bool(list((tmp_path / "made").glob("body-*")))
    applied = munjang("classify", "apply", tmp_path / "made", tmp_path / "examples.csv", "-o", tmp_path / "out.csv", "--json")
    assert applied.code == 0, applied.err
    assert applied.json["rows"] == len(rows) - 1
