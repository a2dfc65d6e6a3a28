"""Which parameters learn, how fast, and when: freezing, groups of learning rates, AdamW, linear warm-up and decay.

The rate of a step is a function of its number, so nothing of the schedule has to be saved. Biases and norms are not decayed, as usual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from munjang.errors import UsageError
from munjang.train.recipe import StageRecipe

_LAYER = re.compile(r"\.layers?\.(\d+)\.")
_HEAD = re.compile(r"^encoder\.model\.((pre_)?classifier\.|head\.|\w+\.pooler\.)")
"""A cross-encoder's head is part of its model."""


def freeze(encoder: nn.Module, stage: StageRecipe) -> None:
    """Hold the embeddings and the first layers still where the stage says so, and let everything else learn."""
    layers = count_layers(encoder)
    if stage.freeze_layers > layers:
        raise UsageError(f"freeze_layers is {stage.freeze_layers}, the model has {layers} layers")
    for name, parameter in encoder.named_parameters():
        layer = find_layer(name)
        held = (layer is None and "embeddings" in name and stage.freeze_embeddings) or (layer is not None and layer < stage.freeze_layers)
        parameter.requires_grad_(not held and not (".pooler." in name and name.startswith("backbone.")))


def find_layer(name: str) -> int | None:
    """Return the number of the layer that a parameter belongs to.

    >>> find_layer("backbone.encoder.layer.3.output.dense.weight"), find_layer("backbone.embeddings.LayerNorm.bias")
    (3, None)
    """
    found = _LAYER.search(name)
    return int(found[1]) if found else None


def count_layers(encoder: nn.Module) -> int:
    """Return how many layers the backbone has."""
    return 1 + max((find_layer(name) or 0 for name, _ in encoder.named_parameters()), default=-1)


def list_learning(modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the parameters that learn, by module and name."""
    for prefix, module in modules.items():
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                yield f"{prefix}.{name}", parameter


def make_optimizer(modules: Mapping[str, nn.Module], stage: StageRecipe) -> torch.optim.AdamW:
    """Return AdamW over every learning parameter of "encoder" and the heads, in groups of equal rate and decay."""
    layers = count_layers(modules["encoder"])
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in list_learning(modules):
        decay = 0.0 if name.endswith(".bias") or "norm" in name.lower() else stage.weight_decay
        groups.setdefault((_choose_rate(name, stage, layers), decay), []).append(parameter)
    if not groups:
        raise UsageError("every parameter is frozen, so nothing can learn")
    listed = [{"params": members, "lr": rate, "base_lr": rate, "weight_decay": decay} for (rate, decay), members in groups.items()]
    return torch.optim.AdamW(listed, fused=True)


def set_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Set each group's rate to its own times `factor`."""
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * factor


def get_rate_factor(step: int, total: int, warmup: float) -> float:
    """Return what share of the learning rate step `step` (from 0) gets: rising over the warm-up, then falling to 0 at the end.

    >>> [round(get_rate_factor(step, 10, 0.2), 2) for step in (0, 1, 2, 6, 9)]
    [0.0, 0.5, 1.0, 0.5, 0.12]
    """
    rising = round(total * warmup)
    if step < rising:
        return step / rising
    return max(0.0, (total - step) / max(1, total - rising))


def save_optimizer(optimizer: torch.optim.Optimizer, named: Sequence[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Return the optimiser's memory as tensors by parameter name."""
    state: dict[str, Tensor] = {}
    for name, parameter in named:
        for key, value in optimizer.state.get(parameter, {}).items():
            state[f"{name}|{key}"] = value.detach().cpu().contiguous()
    return state


def restore_optimizer(optimizer: torch.optim.Optimizer, named: Sequence[tuple[str, nn.Parameter]], state: Mapping[str, Tensor]) -> None:
    """Give the optimiser back what `save_optimizer` took."""
    parameters = dict(named)
    for entry, value in state.items():
        name, key = entry.rsplit("|", 1)
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.clone() if key == "step" else value.to(parameter.device).clone()


def _choose_rate(name: str, stage: StageRecipe, layers: int) -> float:
    if not name.startswith("encoder.") or _HEAD.search(name):
        return stage.head_learning_rate or stage.learning_rate
    layer = find_layer(name)
    if layer is not None:
        return stage.learning_rate * stage.layer_decay ** (layers - 1 - layer)
    if "embeddings" in name:
        return stage.embedding_learning_rate or stage.learning_rate * stage.layer_decay**layers
    return stage.learning_rate
