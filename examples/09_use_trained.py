"""Use a model folder of your own: load, encode, measure, make it smaller and faster, hand it to other tools."""

# %% [markdown]
# Wherever a model's name is expected, a folder does as well: one that `munjang train` wrote, or one in the
# format of sentence-transformers. To have a folder at hand, this example saves the default model under a new
# name. Put your own folder in its place.

# %%
import tempfile
from pathlib import Path

import numpy as np

from munjang import SentenceEncoder, export_onnx
from munjang.data import ReadOptions, read_scored_pairs
from munjang.evaluate.sts import evaluate_sts

HERE = Path(__file__).parent
WORK = Path(tempfile.mkdtemp())
FOLDER = WORK / "my-model"
SentenceEncoder.load().save(FOLDER)
model = SentenceEncoder.load(FOLDER)
print(f"{model.name}: {model.dimension} dimensions, at most {model.max_length} tokens, fingerprint {model.fingerprint[:12]}")

# %% [markdown]
# ## Measure it before you use it

# %%
pairs = read_scored_pairs(HERE / "data/sts.csv", ReadOptions(scale=(0, 5))).rows
print(f"float32  Spearman {evaluate_sts(model, pairs).scores['spearman_cosine']:.3f}")

# %% [markdown]
# ## Faster, smaller
# `compute="int8"` computes in whole numbers. `precision` makes the vectors smaller: a quarter in int8, a
# thirty-second in binary.

# %%
fast = SentenceEncoder.load(FOLDER, compute="int8")
print(f"int8     Spearman {evaluate_sts(fast, pairs).scores['spearman_cosine']:.3f}")
texts = [pair.a for pair in pairs]
for precision in ("float32", "int8", "ubinary"):
    print(f"{precision:<8} {model.encode(texts, precision=precision).nbytes / len(texts):.0f} bytes for each text")

# %% [markdown]
# ## For other tools
# The folder loads in sentence-transformers as it is. `export_onnx` writes one graph for everything that runs
# ONNX, and checks that it gives the same vectors.

# %%
exported = export_onnx(model, WORK / "onnx")
print(f"{exported.path.name}: {exported.bytes / 1e6:.0f} MB, differs by {exported.max_difference:.0e} at most on {exported.texts} texts")

# %% [markdown]
# A text that is longer than the model reads is cut, and never in silence.

# %%
encoded = model.encode_with_report(["A short text.", "long " * 2_000])
print("tokens:", encoded.tokens, "too long:", encoded.too_long)
whole = model.encode(["long " * 2_000], long_text="window")
print("all of it, in windows:", whole.shape, bool(np.isfinite(whole).all()))
