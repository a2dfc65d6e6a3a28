"""Keywords: the phrases of a text that say best what it is about, in Korean and English."""

# %%
from pathlib import Path

from munjang import SentenceEncoder, extract_keywords
from munjang.text.readers import read_texts

HERE = Path(__file__).parent
model = SentenceEncoder.load()
news = [record.text for record in read_texts(HERE / "data/news.csv")]

# %% [markdown]
# Every phrase of a text is compared with the whole text. A Korean phrase is a run of nouns without its particle
# (폭설이 gives 폭설), for which Kiwi splits words: `pip install 'munjang[korean]'`. Without it, plain rules are
# used.

# %%
shown = [news[0], news[6], news[48], news[54]]
for text, words in zip(shown, extract_keywords(shown, model, top=3), strict=True):
    print(text)
    print("  ", ", ".join(f"{word.text} ({word.score:.2f})" for word in words))

# %% [markdown]
# ## Less alike
# The nearest phrases often say the same thing. `diversity` weighs nearness to the text against likeness to
# phrases that were chosen already.

# %%
for diversity in (0.0, 0.7):
    [words] = extract_keywords(news[:1], model, top=4, diversity=diversity)
    print(f"diversity {diversity}:", ", ".join(word.text for word in words))

# %% [markdown]
# ## Where they stand
# Each keyword knows its places, so a page can mark them.

# %%
[words] = extract_keywords(news[:1], model, top=2)
for word in words:
    print(word.text, [news[0][start:end] for start, end in word.places], word.places)
