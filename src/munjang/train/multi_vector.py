"""Pairs of a query and a text that answers it → a multi-vector model, trained with contrastive MaxSim (Khattab and Zaharia, 2020).

Every token's last hidden state is projected to a few dimensions and normalised. A query's score with a text is the mean over its tokens of
the best cosine with a token of the text; of all texts of a batch, its own must score highest. Further texts of a row are hard negatives.
With scores of a teacher for a row's own texts, the student's scores for these follow them too (KL divergence). `matryoshka` trains leading
dimensions of the projection for themselves. The folder that comes out is sentence-transformers 6's MultiVectorEncoder's.

Shapes: B rows, N texts of a batch, Q tokens of queries, T tokens of texts, D dimensions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from munjang.atomic import atomic_folder
from munjang.engine.folder import ModelFolder
from munjang.engine.modules import DenseModule, NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.multi_vector import MultiVectorFolder
from munjang.engine.weights import SINGLE
from munjang.errors import UsageError
from munjang.models.save import write_multi_vector
from munjang.options import Option, Seed, check_options
from munjang.train.encoder import TrainableEncoder
from munjang.train.load_folder import EncoderOptions, load_encoder
from munjang.train.objectives.late_interaction import score_maxsim
from munjang.wording import brief_repr


@dataclass(frozen=True)
class MultiVectorRow:
    """A query, the text that answers it, texts that do not, and a teacher's scores for all of these texts, if there are any."""

    query: str
    positive: str
    negatives: tuple[str, ...] = ()
    teacher_scores: tuple[float, ...] = ()


@brief_repr
@dataclass(frozen=True)
class MultiVectorReport:
    """How a training went."""

    rows: int
    steps: int
    first_loss: float
    last_loss: float
    """Means of the first and of the last tenth of the steps."""


class TokenProjector(nn.Module):
    """An encoder and a projection of its token vectors."""

    def __init__(self, encoder: TrainableEncoder, dimension: int) -> None:
        super().__init__()
        self.encoder = encoder
        width = int(encoder.base.config.hidden_size)
        self.linear = nn.Linear(width, dimension, bias=False)
        nn.init.orthogonal_(self.linear.weight)  # keeps cosines as well as so few dimensions can

    def forward(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the projected tokens of all texts, not yet normalised, padded, (N, T, D), and which of them are real, (N, T)."""
        hidden_TD, packed = self.encoder.hidden(self.encoder.tokens(texts))
        parts = self.linear(hidden_TD).split(packed.lengths_N.tolist())
        ordered = [parts[place] for place in packed.order_N.tolist()]
        padded_NTD = nn.utils.rnn.pad_sequence(ordered, batch_first=True)
        lengths_N = torch.tensor([len(each) for each in ordered], device=padded_NTD.device)
        return padded_NTD, torch.arange(padded_NTD.shape[1], device=padded_NTD.device)[None, :] < lengths_N[:, None]


def compute_loss(
    model: TokenProjector, rows: Sequence[MultiVectorRow], *, temperature: float, dimensions: Sequence[int], distill: float
) -> Tensor:
    """Return the contrastive loss of a batch, and the teacher's part with its weight, over all wanted numbers of dimensions."""
    texts = [row.positive for row in rows] + [text for row in rows for text in row.negatives]
    queries_BQD, asked_BQ = model([row.query for row in rows])
    texts_NTD, real_NT = model(texts)
    target_B = torch.arange(len(rows), device=texts_NTD.device)
    again = [[text == row.positive and place != number for place, text in enumerate(texts)] for number, row in enumerate(rows)]
    again_BN = torch.tensor(again, device=texts_NTD.device)  # another row's text that answers this one too is no negative
    total: Tensor = texts_NTD.new_zeros(())
    for size in dimensions:
        score_BN = score_maxsim(queries_BQD[..., :size], asked_BQ, texts_NTD[..., :size], real_NT)
        total = total + F.cross_entropy((score_BN / temperature).masked_fill(again_BN, -1e4), target_B)
        if distill:
            total = total + distill * _follow_teacher(score_BN, rows, temperature)
    return total / len(dimensions)


def _follow_teacher(score_BN: Tensor, rows: Sequence[MultiVectorRow], temperature: float) -> Tensor:
    losses, place = [], len(rows)
    for number, row in enumerate(rows):
        own = [number, *range(place, place + len(row.negatives))]
        place += len(row.negatives)
        if row.teacher_scores:
            teacher = torch.tensor(row.teacher_scores, device=score_BN.device).softmax(dim=0)
            losses.append(F.kl_div((score_BN[number, own] / temperature).log_softmax(dim=0), teacher, reduction="sum"))
    return torch.stack(losses).mean() if losses else score_BN.new_zeros(())


def train_multi_vector(
    model: Path | str,
    rows: Sequence[MultiVectorRow],
    output: Path | str,
    *,
    dimension: Annotated[int, Option("Dimensions of a token's vector.", min=2)] = 128,
    epochs: Annotated[int, Option("Passes through the data.", min=1)] = 1,
    batch_size: Annotated[int, Option("Rows of a batch.", min=2)] = 16,
    learning_rate: Annotated[float, Option("The highest learning rate; the projection has ten times as much.", min=0)] = 2e-5,
    temperature: Annotated[float, Option("The temperature, by which scores are divided.", min=0.001)] = 0.05,
    distill: Annotated[float, Option("The weight of the teacher's scores.", min=0)] = 1.0,
    matryoshka: Annotated[Sequence[int], Option("Leading dimensions that are also trained on their own.", min=2)] = (),
    max_length: Annotated[int | None, Option("The longest text, in tokens.", min=4)] = None,
    dropout: Annotated[float | None, Option("The dropout rate, else the folder's own.", min=0, max=0.9)] = None,
    seed: Seed = 0,
    progress: Callable[[int, float], None] | None = None,
) -> MultiVectorReport:
    """Train a sentence encoder's folder as a multi-vector model and write it to `output`; `progress` hears of each step and its loss."""
    check_options(train_multi_vector, locals())
    if len(rows) < batch_size:
        raise UsageError(f"there are {len(rows):,} rows, expected at least as many as a batch has, {batch_size:,}")
    odd = next((row for row in rows if row.teacher_scores and len(row.teacher_scores) != 1 + len(row.negatives)), None)
    if odd is not None:
        raise UsageError(
            f"a row has {len(odd.teacher_scores)} scores of a teacher for {1 + len(odd.negatives)} texts, expected one for each"
        )
    torch.manual_seed(seed)
    student = TokenProjector(load_encoder(model, EncoderOptions(max_length=max_length, dropout=dropout)), dimension)
    sizes = sorted({dimension, *(size for size in matryoshka if size < dimension)})
    groups = [
        {"params": [each for each in student.encoder.parameters() if each.requires_grad], "lr": learning_rate},
        {"params": list(student.linear.parameters()), "lr": 10 * learning_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = epochs * (len(rows) // batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / (0.1 * steps + 1), 1 - step / (steps + 1)))
    chance, losses = random.Random(seed), []  # noqa: S311
    student.train()
    for _ in range(epochs):
        shuffled = chance.sample(list(rows), len(rows))
        for start in range(0, len(rows) - batch_size + 1, batch_size):
            loss = compute_loss(student, shuffled[start : start + batch_size], temperature=temperature, dimensions=sizes, distill=distill)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(float(loss.detach()))
            if progress is not None:
                progress(len(losses), losses[-1])
    _save(student, Path(output))
    part = max(len(losses) // 10, 1)
    return MultiVectorReport(len(rows), len(losses), sum(losses[:part]) / part, sum(losses[-part:]) / part)


def _save(student: TokenProjector, target: Path) -> None:
    """Write the folder, whole or not at all."""
    encoder = student.encoder
    with atomic_folder(target) as place:
        encoder.base.save_pretrained(place)
        encoder.tokenizer.save_pretrained(place)
        weights = place / "projection"
        weights.mkdir()
        save_file({"linear.weight": student.linear.weight.detach().contiguous().cpu()}, weights / SINGLE)
        out, wide = student.linear.weight.shape
        dense = DenseModule(folder=weights, in_features=wide, out_features=out, bias=False, activation="identity")
        base = TransformerModule(folder=place, config={}, max_length=encoder.text.max_length, lowercase=encoder.text.lowercase)
        folder = ModelFolder(
            path=place, kind="sentence", modules=(base, PoolingModule(modes=("mean",))), max_length=encoder.text.max_length
        )
        limit = encoder.text.max_length
        described = MultiVectorFolder(
            encoder=folder,
            head=(dense, NormalizeModule()),
            prompts={role: text for role, text in encoder.prompts.items() if text},
            markers={},
            query_length=limit,
            document_length=limit,
            is_mean=True,
        )
        write_multi_vector(place, described)
        (weights / SINGLE).unlink()
        weights.rmdir()
