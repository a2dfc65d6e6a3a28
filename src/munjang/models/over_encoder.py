"""An encoder over another one: its name, dimension and fingerprint are those of the encoder inside, unless a class says otherwise."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from munjang.types import Encoder


class NamedEncoder(Encoder, Protocol):
    """An encoder with a name to show."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...


Inside = TypeVar("Inside", bound=NamedEncoder)


class OverEncoder(Generic[Inside]):
    """What every encoder over another one has in common; `encode` is left to each."""

    def __init__(self, model: Inside) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        return self.model.dimension

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        return self.model.fingerprint
