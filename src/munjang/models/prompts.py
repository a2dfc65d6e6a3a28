"""The prompts of a model folder, by name → the text to put before each text."""

from __future__ import annotations

from munjang.engine.folder import ModelFolder
from munjang.errors import UsageError


def chosen_prompt(folder: ModelFolder, *, prompt: str | None, prompt_name: str | None) -> str:
    """Return the prompt itself, or the one of that name, or the folder's default, or none at all."""
    if prompt is not None:
        return prompt
    name = prompt_name or folder.default_prompt
    if name is None:
        return ""
    if name not in folder.prompts:
        known = ", ".join(folder.prompts) or "none"
        raise UsageError(f"the model has no prompt named {name!r}; it has: {known}")
    return folder.prompts[name]


def first_prompt(folder: ModelFolder, *names: str) -> str | None:
    """Return the prompt of the first name that the folder has."""
    return next((folder.prompts[name] for name in names if name in folder.prompts), None)
