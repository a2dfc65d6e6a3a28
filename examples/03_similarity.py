"""Semantic textual similarity: score pairs of sentences, and measure how well the scores agree with people."""

# %%
from pathlib import Path

from munjang import SentenceEncoder
from munjang.data import ReadOptions, read_scored_pairs
from munjang.evaluate.sts import evaluate_sts

HERE = Path(__file__).parent
model = SentenceEncoder.load()

# %% [markdown]
# ## A few sentences, each with each

# %%
texts = ["The train is late again.", "Our train was delayed once more.", "열차가 또 연착했다.", "I baked bread this morning."]
vectors = model.encode(texts)
for text, row in zip(texts, model.similarity(vectors, vectors), strict=True):
    print(" ".join(f"{score:5.2f}" for score in row), "", text)

# %% [markdown]
# ## Forty pairs with human scores
# `data/sts.csv` holds pairs in English and Korean with a score from 0 (nothing in common) to 5 (the same
# meaning). A model is good when it puts pairs into the same order as people do: Spearman's rank correlation.
# Forty pairs are few, and the interval says so.

# %%
pairs = read_scored_pairs(HERE / "data/sts.csv", ReadOptions(scale=(0, 5)))
result = evaluate_sts(model, pairs.rows, worst=3)
interval = result.ci95["spearman_cosine"]
print(f"{result.n} pairs, Spearman {result.scores['spearman_cosine']:.3f}, 95 % interval {interval.low:.3f} to {interval.high:.3f}")
for genre in result.genres:
    print(f"  {genre.genre}: {genre.spearman_cosine:.3f} on {genre.n} pairs")

# %% [markdown]
# ## Where the model is most wrong

# %%
for pair in result.worst:
    opinion = "too similar" if pair.gap > 0 else "too different"
    print(f"{opinion}: {pair.a} / {pair.b}  (people {5 * pair.gold:.1f} of 5, cosine {pair.cosine:.2f})")
