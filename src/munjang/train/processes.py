"""The processes that train together, through accelerate; one process is the plain case of the same code.

Each process encodes its share of a batch. Objectives that compare rows get every process's vectors, with a gradient to the own ones; the
others average over the own rows, weighted by their number. Gradients are then summed, so the step is that of one process with all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from munjang.errors import UsageError
from munjang.train.load_folder import choose_torch_device
from munjang.train.sampling import share_sizes
from munjang.types import DEFAULT_DEVICE, Device


class Processes:
    """What one process knows of the others."""

    def __init__(self, device: Device = DEFAULT_DEVICE) -> None:
        from accelerate import Accelerator

        _, chosen = choose_torch_device(device, auto=("cuda", "rocm"))
        self._accelerator: Any = Accelerator(cpu=chosen.type == "cpu")

    @property
    def rank(self) -> int:
        """This process's number, from 0."""
        return int(self._accelerator.process_index)

    @property
    def count(self) -> int:
        """How many processes there are."""
        return int(self._accelerator.num_processes)

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    @property
    def device(self) -> torch.device:
        """Where this process computes."""
        device: torch.device = self._accelerator.device
        return device

    def wait(self) -> None:
        """Go on when every process has come here."""
        self._accelerator.wait_for_everyone()

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up every process's gradients, in one message."""
        if self.count == 1:
            return
        learning = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in learning:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in learning if parameter.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        torch.distributed.all_reduce(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, part in zip(gradients, torch.split(flat, sizes), strict=True):
            gradient.copy_(part.view_as(gradient))

    def sum_number(self, value: float) -> float:
        """Add up one number over all processes."""
        if self.count == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(total)
        return float(total)

    def any(self, value: bool) -> bool:
        """Say whether it is so in one process at least."""
        return self.sum_number(float(value)) > 0

    def from_first(self, value: Any) -> Any:
        """Return the first process's value to all."""
        if self.count == 1:
            return value
        held = [value]
        torch.distributed.broadcast_object_list(held, src=0)
        return held[0]

    def gather(self, columns: Sequence[Tensor], rows: int) -> list[Tensor]:
        """Return each column's vectors of all processes in the batch's order; the own ones keep their gradient."""
        if self.count == 1:
            return list(columns)
        sizes = share_sizes(rows, self.count)
        gathered = []
        for column_BD in columns:
            padded = column_BD.new_zeros(max(sizes), column_BD.shape[1])
            padded[: len(column_BD)] = column_BD.detach()
            parts = [torch.empty_like(padded) for _ in sizes]
            torch.distributed.all_gather(parts, padded)
            whole = [part[:size] for part, size in zip(parts, sizes, strict=True)]
            whole[self.rank] = column_BD
            gathered.append(torch.cat(whole))
        return gathered


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return the context in which the encoder runs; bf16 is refused where the hardware would only imitate it."""
    if precision == "bf16" and not has_bf16(device):
        raise UsageError("precision is 'bf16', this machine has no bf16 arithmetic\n  use precision = \"float32\"")
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def has_bf16(device: torch.device) -> bool:
    """Say whether bf16 is faster than an imitation here."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
