"""Match products of two shops: the same things under other names, each used once, and what has no counterpart."""

# %%
from pathlib import Path

from munjang import SentenceEncoder
from munjang.analyze.match import match
from munjang.text.readers import read_texts

HERE = Path(__file__).parent
model = SentenceEncoder.load()
ours = list(read_texts(HERE / "data/shop.csv"))
theirs = list(read_texts(HERE / "data/supplier.csv"))
our_vectors = model.encode([record.text for record in ours])
their_vectors = model.encode([record.text for record in theirs])

# %% [markdown]
# Each of our products takes the nearest one of the supplier. Two of ours may take the same.

# %%
nearest = match(our_vectors, their_vectors)
taken = [one.right for one in nearest.matches]
print(f"{len(nearest.matches)} products, {len(taken) - len(set(taken))} of them share a counterpart with another")

# %% [markdown]
# ## One to one
# Each product is used once, so that the sum of all scores is the largest there is. In these two files, `a01`
# goes with `s01` and so on, so we can count what is right.

# %%
matched = match(our_vectors, their_vectors, one_to_one=True)
right = sum(ours[one.left].id[1:] == theirs[one.right].id[1:] for one in matched.matches)
print(f"{right} of {len(ours)} are right")
for one in matched.matches[::6]:
    print(f"  {one.score:.2f}  {ours[one.left].text}  =  {theirs[one.right].text}")

# %% [markdown]
# ## Rather none than a wrong one
# A threshold leaves weak pairs out. Which cosine is a good threshold differs from model to model (`munjang match
# --calibrate` finds it on pairs that you have judged). A margin is the cosine divided by that of the neighbours: 1
# means "no closer than others" with every model.

# %%
sure = match(our_vectors, their_vectors, one_to_one=True, margin=True, threshold=1.05)
good = sum(ours[one.left].id[1:] == theirs[one.right].id[1:] for one in sure.matches)
print(f"{len(sure.matches)} pairs with a margin of 1.05 and more, {good} of them right")
print("only at the supplier's:", [theirs[place].text for place in sure.right_alone][-6:])
