"""Vectors → a place on a plane for each, near ones near each other, the same on every run.

    pca    the two directions of the largest spread; quick, shows the whole, blurs the small
    tsne   PCA to 50 dimensions, then scikit-learn's t-SNE from a PCA start; shows neighbourhoods (extra `topics`)
    umap   PCA to 50 dimensions, then umap-learn's UMAP, where that is installed
    auto   t-SNE up to 20,000 different rows, PCA beyond or without scikit-learn

Equal rows get equal places. Places lie between 0 and 1.

Shapes: N rows, U different rows, D dimensions.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import MissingExtra, UsageError
from munjang.options import Option, Seed, check_options
from munjang.types import Vectors
from munjang.vectors.similarity import to_rows

Layout: TypeAlias = Literal["auto", "pca", "tsne", "umap"]

MAX_TSNE = 20_000
"""Rows that t-SNE lays out within minutes."""
_BEFORE = 50  # dimensions that are left before neighbourhoods are looked at
_FEWEST = 4  # rows below which neighbourhoods mean nothing


def lay_out(
    vectors: ArrayLike,
    *,
    layout: Annotated[Layout, Option("The layout method; auto is tsne up to 20,000 texts, pca beyond.")] = "auto",
    seed: Seed = 0,
) -> Vectors:
    """Return two numbers from 0 to 1 for each row.

    >>> lay_out([[1, 0, 0], [0, 1, 0], [1, 0, 0]], layout="pca")[:, 0].tolist()
    [1.0, 0.0, 1.0]
    """
    check_options(lay_out, locals())
    rows_ND = to_rows(vectors, "vectors")
    if not rows_ND.size:
        return np.zeros((0, 2), dtype=np.float32)
    unique_UD, place_N = np.unique(rows_ND, axis=0, return_inverse=True)
    chosen = _choose_method(layout, len(unique_UD))
    if chosen == "pca" or len(unique_UD) < _FEWEST:
        flat_U2 = find_principal_axes(unique_UD, 2)
    elif chosen == "tsne":
        flat_U2 = _run_tsne(find_principal_axes(unique_UD, _BEFORE), seed)
    else:
        flat_U2 = _run_umap(find_principal_axes(unique_UD, _BEFORE), seed)
    return _scale_to_one(flat_U2)[place_N.reshape(-1)]


def find_principal_axes(rows_ND: Vectors, dimensions: int) -> Vectors:
    """Return the rows in the directions of their largest spread, signs fixed, so that the answer does not depend on chance.

    Missing directions are zeros.
    """
    centred_ND = (rows_ND - rows_ND.mean(axis=0)).astype(np.float64)
    spread_DD = centred_ND.T @ centred_ND
    _, directions_DD = np.linalg.eigh(spread_DD)
    kept_DK = directions_DD[:, ::-1][:, :dimensions]
    largest_K = np.abs(kept_DK).round(9).argmax(axis=0)  # equal ones may differ in the last bit: the first of them decides
    kept_DK = kept_DK * np.where(kept_DK[largest_K, np.arange(kept_DK.shape[1])] < 0, -1, 1)
    found_NK = centred_ND @ kept_DK
    missing = dimensions - found_NK.shape[1]
    return np.asarray(np.pad(found_NK, ((0, 0), (0, max(missing, 0)))), dtype=np.float32)


def _choose_method(method: str, rows: int) -> str:
    if method == "auto":
        return "tsne" if rows <= MAX_TSNE and find_spec("sklearn") is not None else "pca"
    if method == "tsne" and find_spec("sklearn") is None:
        raise MissingExtra("a t-SNE map", "topics")
    if method == "umap" and find_spec("umap") is None:
        raise UsageError("a UMAP map needs umap-learn, which is not installed\n  pip install umap-learn, or use the layout tsne")
    return method


def _run_tsne(rows_UK: Vectors, seed: int) -> Any:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(rows_UK) - 1) / 3)
    spread = float(rows_UK[:, 0].std()) or 1.0
    start_U2 = (rows_UK[:, :2] / spread * 1e-4).astype(np.float32)
    return TSNE(perplexity=perplexity, init=start_U2, random_state=seed, learning_rate="auto").fit_transform(rows_UK)


def _run_umap(rows_UK: Vectors, seed: int) -> Any:
    from umap import UMAP  # type: ignore[import-not-found, unused-ignore]  # not in any extra

    return UMAP(n_neighbors=min(15, len(rows_UK) - 1), random_state=seed, n_jobs=1).fit_transform(rows_UK)


def _scale_to_one(flat_U2: Any) -> Vectors:
    """Scale both sides by the longer one, so that distances keep their proportion, and put the shorter one in the middle."""
    low, high = flat_U2.min(axis=0), flat_U2.max(axis=0)
    longest = float((high - low).max()) or 1.0
    return np.asarray(np.clip((flat_U2 - (low + high) / 2) / longest + 0.5, 0, 1), dtype=np.float32)
