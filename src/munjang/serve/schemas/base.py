"""Two kinds of request: a dialect's, which ignores fields it does not know as its own servers do, and Munjang's, which names them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class DialectModel(BaseModel):
    """A request or an answer of a dialect that others made."""

    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class OwnModel(BaseModel):
    """A request or an answer of Munjang's own."""

    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())
