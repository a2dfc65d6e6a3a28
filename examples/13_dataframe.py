"""From a CSV file to topics and a map, with data frames and what a notebook shows of results.

Results are lists and objects, and tables as well: `to_pandas()` gives a data frame, and a notebook draws them.
Run as a file, this prints the same facts as text.
"""

# %%
import tempfile
from pathlib import Path

import pandas as pd

from munjang import Library, SentenceEncoder, draw_map, extract_keywords, fit_topics, lay_out, topics_over_time

HERE = Path(__file__).parent
model = SentenceEncoder.load()
news = pd.read_csv(HERE / "data/news.csv", index_col="id")
print(f"{len(news)} texts, {news['language'].value_counts().to_dict()}")
news.head()

# %% [markdown]
# ## Topics
# A column of the frame goes in. The vectors serve the topics and the map.

# %%
vectors = model.encode(news["text"])
topics = fit_topics(news["text"], vectors=vectors, topics=6, min_size=5, words=6)
print(topics)
topics

# %% [markdown]
# The topic of each text comes back as columns with the rows' own labels. Nobody told the method which desk wrote
# what; how far do topics and desks agree?

# %%
news = news.join(topics.assigned.to_pandas(index=news.index))
agreement = pd.crosstab(news["name"], news["desk"])
print(agreement.to_string())
agreement

# %%
trend = topics_over_time(topics, news["date"], periods=4)
print(trend.to_pandas().pivot_table(index="name", columns="topic", values="documents").to_string())
trend

# %% [markdown]
# ## The map
# Similar texts lie close together, in both languages. Hover over a point to read its text; `save` writes a page
# that can be searched.

# %%
picture = draw_map(lay_out(vectors), news["text"], groups=news["name"], names=news.index, title="News by topic")
page = Path(tempfile.mkdtemp()) / "map.html"
picture.save(page)
print(f"written to {page.name}, {page.stat().st_size // 1024} KiB")
picture

# %% [markdown]
# ## Keywords, and keywords among your own phrases

# %%
chosen = news.groupby("desk").head(1)
keywords = extract_keywords(chosen["text"], model, top=2)
print(keywords.to_pandas().to_string())
keywords

# %%
themes = ["snow", "rain", "눈", "비", "match", "경기", "interest rates", "금리"]
own = extract_keywords(news["text"], model, top=1, candidates=themes)
print(own.to_pandas()["keyword"].value_counts().head(4).to_dict())

# %% [markdown]
# ## A library of the frame
# Every other column becomes metadata, which searches can filter by and hits bring back.

# %%
with Library.open(Path(tempfile.mkdtemp()) / "news.db", model) as library:
    library.add(news[["text", "language", "desk", "date"]])
    hits = library.search("rising interest rates", k=5)
print(hits.to_pandas()[["id", "score", "language", "text"]].to_string())
hits
