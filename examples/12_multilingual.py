"""Search across languages: a Korean question finds English texts, and the other way round."""

# %% [markdown]
# A multilingual model puts a sentence and its translation close together. This needs a model that knows both
# languages: the bundled `ko-en-small` does. An English model, such as all-MiniLM-L6-v2, finds little here,
# which the counts at the end show.

# %%
from pathlib import Path

from munjang import SentenceEncoder, top_k
from munjang.analyze.match import match
from munjang.text.readers import read_texts

HERE = Path(__file__).parent
model = SentenceEncoder.load()
records = list(read_texts(HERE / "data/questions.csv"))
vectors = model.encode_document([record.text for record in records])
print(f"{len(records)} questions of customers, model {model.name}")

# %% [markdown]
# ## Ask in one language, read in both

# %%
questions = ["환불은 언제 되나요?", "my parcel is lost", "주차할 수 있나요?", "delete everything you know about me"]
scores, rows = top_k(model.encode_query(questions), vectors, k=4)
for question, line, found in zip(questions, scores, rows, strict=True):
    print(question)
    for score, row in zip(line, found, strict=True):
        print(f"  {score:.2f}  {records[row].metadata['language']}  {records[row].text}")

# %% [markdown]
# ## Find translations
# Every English question has a Korean one that asks the same. Which are they? The margin divides a pair's score
# by the scores of its neighbours, so that a sentence that is close to everything does not win everywhere.

# %%
english = [place for place, record in enumerate(records) if record.metadata["language"] == "en"]
korean = [place for place, record in enumerate(records) if record.metadata["language"] == "ko"]
for scoring in ("cosine", "margin"):
    pairs = match(vectors[english], vectors[korean], one_to_one=True, margin=scoring == "margin").matches
    right = sum(records[english[one.left]].id[:-3] == records[korean[one.right]].id[:-3] for one in pairs)
    print(f"{scoring}: {right} of {len(english)} translations found")
