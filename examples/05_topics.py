"""Topics by class-based TF-IDF: group the vectors, then ask which words tell a group from the others."""

# %%
from pathlib import Path

from munjang import SentenceEncoder, fit_topics
from munjang.analyze.topics.assign import assign_topics, find_topics
from munjang.analyze.topics.describe import topics_over_time
from munjang.text.readers import read_texts

HERE = Path(__file__).parent
model = SentenceEncoder.load()
news = list(read_texts(HERE / "data/news.csv"))
texts = [record.text for record in news]

# %% [markdown]
# Vectors of texts about the same thing lie close together. Groups are found first, without looking at a word.
# Then all texts of a group are taken as one long text, and TF-IDF over these finds the words that are frequent
# in one group and rare in the others.

# %%
topics = fit_topics(texts, model, topics=6, min_size=5, words=6)
for topic in topics.topics:
    print(f"{topic.id}: {topic.size} texts: {', '.join(word for word, _ in topic.words)}")
print(f"outliers {topics.outliers}, coherence {topics.coherence:.2f}, diversity {topics.diversity:.2f}")

# %% [markdown]
# The file says which desk wrote each text, which the method has not seen. How far do topics and desks agree?
# With a model that knows Korean and English, texts of both languages share a topic.

# %%
for topic in topics.topics:
    desks = [record.metadata["desk"] for record, label in zip(news, topics.labels, strict=True) if label == topic.id]
    print(topic.id, {desk: desks.count(desk) for desk in sorted(set(desks))})

# %% [markdown]
# ## New texts, a question, the year

# %%
new = ["The storm left snow on every road.", "수비수가 마지막 경기에서 골을 넣었다."]
print(assign_topics(topics, new, encoder=model).labels)
[(best, score), *_] = find_topics(topics, model.encode("rising interest rates"))
print(f"“rising interest rates” is nearest to topic {best} ({score:.2f})")

# %%
trend = topics_over_time(topics, [record.metadata["date"] for record in news], periods=4)
for period, counts in zip(trend.names, trend.counts_TK, strict=True):
    print(period, counts)
