"""`munjang export`: a model → a folder with one ONNX graph, checked against the model's own vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.load_model import load_model
from munjang.cli.options import JsonOption, ModelArgument, examples, new_app
from munjang.cli.show import emit, print_facts, size_text
from munjang.types import Compute

app = new_app()


@app.command(epilog=examples("munjang export all-MiniLM-L6-v2 -o minilm-onnx", "munjang export my-model -o my-model-int8 --int8 --json"))
def export(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")],
    int8: Annotated[bool, typer.Option("--int8", help="Quantise to int8: a quarter of the size, for onnxruntime.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Export a model as one verified ONNX graph.

    The graph maps token ids to sentence vectors, including pooling and all later modules, and is checked against the model's own vectors.
    """
    from munjang.models.export import export_onnx

    compute: Compute = "int8" if int8 else "float32"
    encoder = load_model(model, compute=compute)
    report = export_onnx(encoder, output, compute=compute)
    if as_json:
        emit(
            {
                "path": str(report.path),
                "bytes": report.bytes,
                "max_difference": report.max_difference,
                "texts": report.texts,
                "compute": compute,
            }
        )
        return
    print_facts(
        [
            ("written to", str(report.path)),
            ("size", size_text(report.bytes)),
            ("compute", compute),
            ("checked", f"{report.texts} texts, no number differs by more than {report.max_difference:.1e} from the model's own"),
        ]
    )
