"""The names that model folders give to activation functions, and what each one is here."""

from __future__ import annotations

from munjang.engine.modules import Activation

HIDDEN_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "tanh": "tanh",
}
"""`hidden_act` of a config.json."""

TORCH_ACTIVATIONS: dict[str, Activation] = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.linear.Identity": "identity",
}
"""`activation_function` of a Dense module, `activation_fn` of a cross-encoder: names to recognise, never to import."""

TORCH_NAMES: dict[Activation, str] = {activation: name for name, activation in TORCH_ACTIVATIONS.items()}
"""The name under which each activation is saved."""
