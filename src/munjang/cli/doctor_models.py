"""Are the models sound: the default one and all that are bundled? Others are counted, and looked at by `munjang models check`."""

from __future__ import annotations

from collections.abc import Iterator

from munjang.cli.doctor_findings import Finding, fine, said, wrong
from munjang.errors import FolderError
from munjang.models.registry import Found, list_models, resolve, resolve_reranker


def models() -> Iterator[Finding]:
    """Yield what there is to say about models."""
    known = list_models()
    default = None
    try:
        default = resolve()
    except FolderError as error:
        yield wrong("default model", *str(error).split("\n  ", 1))
    looked_at = [found for found in known if found.origin == "bundled" or (default is not None and found.path == default.path)]
    for found in looked_at:
        yield model_finding(found, is_default=default is not None and found.path == default.path)
    yield reranker_finding()
    others = len(known) - len(looked_at)
    if others:
        yield fine("other models", f"{others}; munjang models check NAME looks into one")


def model_finding(found: Found, *, is_default: bool) -> Finding:
    """Check one model as `munjang models check` does: every tensor, a probe, and the SHA-256 of bundled files."""
    from munjang.cli.model_facts import check

    name = f"model {found.name}"
    checked = check(found)
    if checked.problem is not None:
        what, _, advice = checked.problem.partition("\n  ")
        return wrong(name, what, advice or "install it again, or name another model in your commands")
    return fine(name, f"{found.origin}{', the default' if is_default else ''}: sound, {checked.tensors} tensors")


def reranker_finding() -> Finding:
    """Say whether re-ranking works without naming a model."""
    try:
        return fine("re-ranker", resolve_reranker().name)
    except FolderError:
        return said("re-ranker", "none is bundled", "munjang search --rerank needs --reranker with a cross-encoder's folder")
