"""What a sentence looks like to BERT: tokens and ids go in, one vector for each token comes out of every layer."""

# %% [markdown]
# A model does not read letters. Its tokenizer splits a text into pieces that it knows, adds special pieces
# around them, and gives each piece a number. Everything else is computed from these numbers.

# %%
from munjang import SentenceEncoder
from munjang.models.inspect import inspect_text

model = SentenceEncoder.load()
print(f"{model.name}: {model.tokenizer.vocabulary_size:,} pieces, reads at most {model.max_length} tokens")

# %%
for text in ("It is raining today.", "오늘은 비가 온다.", "Unbelievably rainy!"):
    [ids] = model.tokenizer.encode([text])
    print(f"{text}\n  {model.tokenizer.tokens(ids)}\n  {ids}")

# %% [markdown]
# ## Input
# BERT takes four numbers for each token: the piece, the segment (0 for the first sentence of a pair, 1 for the
# second; models of the RoBERTa family always have 0), the position and the mask (1 for a token, 0 for padding).
# `start` and `end` say which characters a token stands for.

# %%
seen = inspect_text(model, "It is raining today.")
print(f"{'token':>10} {'id':>6} {'segment':>8} {'position':>9} {'mask':>5}  characters")
for token in seen.tokens:
    print(f"{token.text:>10} {token.id:>6} {token.segment:>8} {token.position:>9} {token.mask:>5}  {token.start}–{token.end}")

# %% [markdown]
# Two sentences at once, as a cross-encoder reads them, are one sequence with a separator between them.

# %%
[(ids, segments)] = model.tokenizer.encode_pairs([("It is raining.", "Rain is falling.")])
print(list(zip(model.tokenizer.tokens(ids), segments, strict=True)))

# %% [markdown]
# ## Output
# Each layer gives one vector for each token. The last layer's vectors are the input of pooling, which makes one
# vector of them.

# %%
for layer in seen.layers:
    norm = "" if layer.mean_norm is None else f"mean length {layer.mean_norm:.2f}"
    print(f"{layer.name:<20} {layer.shape!s:<12} {norm}")
print("sentence vector:", seen.vector.shape, seen.vector[:4].round(3))
