"""A model and labelled texts → the same model, tuned so that texts with one label lie close together.

SetFit's idea at less cost: SetFit encodes both texts of every pair that it draws; here a batch of texts is encoded once and every text is
compared with every other (supervised contrastive loss), so that a batch of B texts counts as B² pairs. Embeddings stay as they are. The
encoder runs in bfloat16 where the machine computes it faster; the weights stay float32. The classifier itself is fitted afterwards, on the
tuned vectors, by whoever calls.

Shapes: N texts, B texts of a batch, D dimensions, C labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from munjang.atomic import atomic_folder, make_folder
from munjang.errors import InputError
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train.encoder import MAX_LENGTH, TrainableEncoder
from munjang.train.load_folder import load_encoder
from munjang.train.optimizer import get_rate_factor
from munjang.train.processes import autocast, has_bf16
from munjang.train.sentence_task import save_encoder


@dataclass(frozen=True)
class TuneSettings:
    """How long and how fast the body learns."""

    passes: float = 16.0
    """How often each text is read."""
    most_steps: int = 200
    batch_texts: int = 64
    learning_rate: float = 1e-4
    """Chosen on ParaKQC's intents and SAE4K's types, on which 3e-5 gives 3.9 points of macro-F1 less and 2e-4 as much."""
    temperature: float = 0.1
    warmup: float = 0.1


@dataclass(frozen=True)
class BodyTuner:
    """Tunes the model in a folder, for `munjang.fit_tuned_classifier`."""

    model: Path | str
    settings: TuneSettings = field(default_factory=TuneSettings)

    def tune(self, texts: Sequence[str], target_NC: NDArray[np.bool_], /, *, seed: int) -> TrainableEncoder:
        """Return an encoder that has learnt which labels texts have."""
        return tune_body(self.model, texts, target_NC, settings=self.settings, seed=seed)

    def save(self, body: TrainableEncoder, folder: Path, /) -> tuple[PromptedEncoder, str]:
        """Save a tuned encoder into a classifier's folder; return it as it is loaded from there, and its place."""
        make_folder(folder)
        target = folder / f"body-{hashlib.sha256(body.fingerprint.encode()).hexdigest()[:16]}"
        if not target.is_dir():
            with atomic_folder(target) as written:
                save_encoder(body, written)
        return SentenceEncoder.load(target).with_prompt(), str(target)


def tune_body(
    model: Path | str, texts: Sequence[str], target_NC: NDArray[np.bool_], *, settings: TuneSettings | None = None, seed: int = 0
) -> TrainableEncoder:
    """Return the encoder in a folder after it has learnt the labels; the same seed gives the same encoder on the same machine."""
    kind_N = np.unique(target_NC, axis=0, return_inverse=True)[1].reshape(-1)
    if len(texts) != len(target_NC) or len(set(kind_N.tolist())) < 2:
        raise InputError(
            f"{len(texts):,} texts with {len(set(kind_N.tolist())):,} labels, expected labels for each and at least two in all"
        )
    chosen = settings or TuneSettings()
    torch.manual_seed(seed)
    encoder = load_encoder(model)
    learning = [each for name, each in encoder.named_parameters() if "embeddings" not in name and each.requires_grad]
    for name, each in encoder.named_parameters():
        each.requires_grad_(each.requires_grad and "embeddings" not in name)
    optimizer = torch.optim.AdamW(learning, lr=chosen.learning_rate, weight_decay=0.01)
    ids, learnt_NC = _cut(encoder, texts), torch.as_tensor(target_NC, dtype=torch.float32)
    batch = min(chosen.batch_texts, len(texts))
    steps = max(1, min(chosen.most_steps, round(chosen.passes * len(texts) / batch)))
    random = np.random.default_rng(seed)
    precision = "bf16" if has_bf16(encoder.device) else "float32"
    encoder.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = chosen.learning_rate * get_rate_factor(step + 1, steps + 1, chosen.warmup)
        rows = draw_batch(kind_N, batch, random)
        with autocast(precision, encoder.device):
            vectors_BD = encoder([ids[row] for row in rows])
        loss = supervised_contrastive_loss(vectors_BD.float(), learnt_NC[rows], chosen.temperature)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
    encoder.eval()
    return encoder


def _cut(encoder: TrainableEncoder, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of texts, at most MAX_LENGTH of each; what a label depends on is rarely further behind."""
    whole = encoder.text
    encoder.text = replace(whole, max_length=min(whole.max_length, MAX_LENGTH))
    ids = encoder.tokens(list(texts))
    encoder.text = whole
    return ids


def draw_batch(kind_N: np.ndarray, batch: int, random: np.random.Generator) -> np.ndarray:
    """Return rows of a batch; labels, or sets of them, take turns, so that rare ones have company too."""
    order = random.permutation(len(kind_N))
    turn = np.zeros(len(order), dtype=np.int64)
    seen: dict[int, int] = {}
    for place, row in enumerate(order):
        turn[place] = seen[int(kind_N[row])] = seen.get(int(kind_N[row]), -1) + 1
    drawn: np.ndarray = order[np.argsort(turn, kind="stable")[:batch]]
    return drawn


def supervised_contrastive_loss(vectors_BD: Tensor, target_BC: Tensor, temperature: float) -> Tensor:
    """Return how unlikely it is that a text's neighbours have a label of its own; texts that are alone with theirs do not count."""
    unit_BD = normalize(vectors_BD, dim=1)
    scores_BB = unit_BD @ unit_BD.T / temperature
    own_BB = torch.eye(len(target_BC), dtype=torch.bool, device=scores_BB.device)
    log_share_BB = scores_BB.masked_fill(own_BB, -torch.inf).log_softmax(dim=1)
    same_BB = (target_BC @ target_BC.T > 0).to(scores_BB.device) & ~own_BB
    count_B = same_BB.sum(dim=1)
    kept = count_B > 0
    if not bool(kept.any()):
        return vectors_BD.sum() * 0
    loss_B = -log_share_BB.masked_fill(~same_BB, 0).sum(dim=1)[kept] / count_B[kept]
    return loss_B.mean()
