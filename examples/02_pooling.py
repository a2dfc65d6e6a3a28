"""From token vectors to a sentence vector: mean, first-token and max pooling, by hand."""

# %% [markdown]
# A sentence has as many token vectors as it has tokens. Pooling makes one vector of them, so that sentences of
# any length can be compared.

# %%
import numpy as np

from munjang import SentenceEncoder, similarity

model = SentenceEncoder.load()
texts = ["A man is playing the guitar.", "Someone makes music on a guitar.", "The soup needs more salt."]
tokens = model.encode_tokens(texts)
for text, one in zip(texts, tokens, strict=True):
    print(f"{one.vectors.shape}  {text}")

# %% [markdown]
# ## Three ways to pool
# - **mean**: the average of all token vectors. Most sentence models are trained this way.
# - **cls**: the vector of the first token, which a model can learn to fill with the meaning of the whole.
# - **max**: the largest number of each dimension.

# %%
pooled = {
    "mean": np.stack([one.vectors.mean(axis=0) for one in tokens]),
    "cls": np.stack([one.vectors[0] for one in tokens]),
    "max": np.stack([one.vectors.max(axis=0) for one in tokens]),
}
for name, vectors in pooled.items():
    near, far = similarity(vectors[:1], vectors[1:])[0]
    print(f"{name:<5} guitar–music {near:.3f}   guitar–soup {far:.3f}   gap {near - far:.3f}")

# %% [markdown]
# The pooling that a model was trained with separates best. `encode` does it for you, and brings the vector to
# length 1 if the model says so. Our own mean is the same vector.

# %%
vectors = model.encode(texts)
own = pooled["mean"] / np.linalg.norm(pooled["mean"], axis=1, keepdims=True)
print("lengths:", np.linalg.norm(vectors, axis=1).round(4))
print("largest difference from our own mean pooling:", f"{np.abs(own - vectors).max():.1e}")
