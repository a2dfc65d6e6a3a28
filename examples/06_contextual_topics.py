"""Topics by a contextual topic model: a small neural network that gives back a text's words from its words and its vector."""

# %%
from pathlib import Path

from munjang import SentenceEncoder, fit_topics
from munjang.analyze.topics.assign import assign_topics
from munjang.text.readers import read_texts

HERE = Path(__file__).parent
model = SentenceEncoder.load()
news = list(read_texts(HERE / "data/news.csv"))

# %% [markdown]
# The network squeezes a text into a few topic shares and has to write the text's words from them. So a topic is
# what lets it guess words. Words are hidden in every second step, so that in the end the vector alone says the
# topic. It learns here on the English texts. Thirty-six texts are very few for a network; in earnest take
# thousands.

# %%
english = [record for record in news if record.metadata["language"] == "en"]
topics = fit_topics([record.text for record in english], model, method="contextual", topics=6, words=6)
for topic in topics.topics:
    print(f"{topic.id}: {topic.size} texts: {', '.join(word for word, _ in topic.words)}")

# %% [markdown]
# ## From one language to another
# The model has never seen a Korean text. With vectors of a model that knows both languages, it still knows what
# Korean texts are about. With an English model it guesses.

# %%
korean = [record for record in news if record.metadata["language"] == "ko"]
found = assign_topics(topics, [record.text for record in korean], encoder=model).labels


def main_desk(topic: int) -> str:
    """Return the desk that most of a topic's English texts come from."""
    desks = [record.metadata["desk"] for record, label in zip(english, topics.labels, strict=True) if label == topic]
    return max(sorted(set(desks)), key=desks.count) if desks else "none"


right = sum(main_desk(int(label)) == record.metadata["desk"] for record, label in zip(korean, found, strict=True))
print(f"{right} of {len(korean)} Korean texts got a topic of their own desk")
for record, label in list(zip(korean, found, strict=True))[::6]:
    print(f"  {record.text} → {main_desk(int(label))}")
