"""Recommend books: a library of descriptions, questions in plain words, and "more like this, less like that"."""

# %%
import tempfile
from pathlib import Path

from munjang import Library, SentenceEncoder
from munjang.library.results import Hit
from munjang.text.readers import read_texts

HERE = Path(__file__).parent
model = SentenceEncoder.load()
library = Library.open(Path(tempfile.mkdtemp()) / "books.db", model)
report = library.add(read_texts(HERE / "data/books.csv"))
print(report.added, "books added")


def show(title: str, hits: list[Hit]) -> None:
    """Print what was asked, and one line for each hit."""
    print(title)
    for hit in hits:
        print(f"  {hit.score:.2f}  {hit.metadata['title']} ({hit.metadata['genre']}, {hit.metadata['year']}): {hit.text}")


# %% [markdown]
# The books are invented. `books.db` is one SQLite file. Adding the same file again encodes nothing, since
# nothing has changed.
#
# ## Ask in your own words

# %%
for question in ("a detective has to find out who killed somebody", "아이에게 읽어 줄 동물 이야기"):
    show(question, library.search(question, k=3))

# %% [markdown]
# ## Filters
# Columns of the file are metadata, and a search can be limited by them.

# %%
space = library.search("life in space", k=3, where="year >= 2019 and language = 'en'")
show("life in space, since 2019, in English", space)

# %% [markdown]
# ## Words as well as meaning
# A name or a rare word is found by its letters. A search weighs words and meaning.

# %%
show("sourdough", library.search("sourdough", k=2, where="language = 'en'"))

# %% [markdown]
# ## More like this
# A reader liked two crime stories. Then the reader says: like the second, but not like the one in the hotel.

# %%
liked = library.search(like=["b02", "b03"], k=3)
show("like b02 and b03", liked)
show("like b03, unlike b02", library.search(like=["b03"], unlike=["b02"], k=3))

# %% [markdown]
# Likes and a question together: travel books for someone who liked the one about local trains, and is interested
# in islands.

# %%
show("islands and the sea, like b32", library.search("islands and the sea", like=["b32"], k=3, where="genre = 'travel'"))
library.close()
