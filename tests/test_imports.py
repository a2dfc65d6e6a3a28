"""What importing, loading and encoding bring into a process."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "transformers", "sentence_transformers", "accelerate", "sklearn", "scipy", "pandas", "faiss")


def modules_after(code: str, *arguments: str) -> set[str]:
    """Run code in a fresh Python and return the names of all top-level modules it has loaded."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_importing_munjang_imports_next_to_nothing():
    found = modules_after("import munjang")
    assert not found & {*HEAVY, "numpy", "onnx", "onnxruntime", "tokenizers", "safetensors", "typer", "rich"}


def test_listing_the_public_names_imports_nothing_heavy():
    assert not modules_after("import munjang; dir(munjang); munjang.__version__") & {*HEAVY, "numpy", "onnx"}


def test_encoding_needs_neither_torch_nor_transformers(tiny_bert_folder):
    code = """
import sys
from munjang import SentenceEncoder
model = SentenceEncoder.load(sys.argv[1])
assert model.encode(["rain", "snow"]).shape == (2, 32)
model.encode_tokens(["rain"])
"""
    found = modules_after(code, str(tiny_bert_folder))
    assert "onnxruntime" in found
    assert not found & set(HEAVY)
    assert "rich" not in found


def test_every_public_name_can_be_had():
    import munjang

    for name in munjang.__all__:
        assert getattr(munjang, name) is not None
