"""Token vectors that another library computed → sentence vectors, by the folder's own pooling and later modules.

The graph is that of the fast engine's head, so a model pools in the same way whatever runs its layers. It runs on the CPU in float32.

Shapes: T tokens in all, B texts, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.engine.folder import ModelFolder
from munjang.engine.head_graph import compute_head_width, reads_first_only, write_head
from munjang.engine.layout import PACKED_INPUTS, PackedLayout, pack
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.session import open_session
from munjang.types import Vectors

_READ = ("slots", "pool_mask")


class TokenHead:
    """Pools token vectors; safe from many threads."""

    def __init__(self, folder: ModelFolder, width: int, *, threads: int | None = None) -> None:
        modules = folder.modules[1:]
        self.first_only = reads_first_only(folder.modules)
        """Whether nothing but each text's first token is read."""
        self.dimension = compute_head_width(modules, width)
        pen = GraphBuilder()
        pen.name_output(write_head(pen, "hidden", PackedLayout(pen), modules, width), "vectors")
        inputs = [("hidden", FLOAT, ["T", width]), *(each for each in PACKED_INPUTS if each[0] in _READ)]
        self._session = open_session(pen, inputs, [("vectors", ["B", self.dimension])], threads=threads)

    def vectors(self, hidden_TD: Vectors, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text; `hidden_TD` has a row for each id, text after text, or for each text's first with `first_only`."""
        packed = pack(ids, first_position=0, hidden_prefix=hidden_prefix)
        return self._session.run({"hidden": hidden_TD, **{name: packed[name] for name in _READ}}, ["vectors"])[0]
