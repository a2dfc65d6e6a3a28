"""Vectors of a Dask dataframe: partitions are encoded one by one, here or on as many machines as there are."""

# %% [markdown]
# This needs the extra `dask`: `pip install 'munjang[dask]'`. A Dask dataframe is a row of ordinary dataframes,
# its partitions. Nothing is encoded before Dask asks for it, and no more than a few partitions are in memory at
# once.

# %%
import tempfile
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
import pyarrow.parquet as pq

from munjang import encode_dask, top_k

HERE = Path(__file__).parent
frame = dd.from_pandas(pd.read_csv(HERE / "data/news.csv"), npartitions=4)
print(frame.npartitions, "partitions of", [len(part) for part in frame.partitions], "rows")

# %% [markdown]
# The new column is a list of numbers of one length, which Parquet and Arrow know as such.

# %%
encoded = encode_dask(frame, "text", into="vector")
print(encoded.dtypes["vector"])
folder = Path(tempfile.mkdtemp()) / "news"
encoded.to_parquet(folder, write_index=False)
print(sorted(path.name for path in folder.iterdir()))

# %% [markdown]
# ## Use what was written
# Read only what is needed: here the vectors of one language, and the nearest text of each.

# %%
korean = pq.read_table(folder, columns=["text", "vector"], filters=[("language", "==", "ko")])
texts = korean["text"].to_pylist()
vectors = korean["vector"].combine_chunks().flatten().to_numpy().reshape(len(texts), -1)
scores, rows = top_k(vectors, vectors, k=2)
for place in range(0, len(texts), 9):
    print(f"{scores[place, 1]:.2f}  {texts[place]}\n      {texts[rows[place, 1]]}")

# %% [markdown]
# On a cluster, `munjang bulk FILES -o FOLDER --dask ADDRESS` does the same for files, can be resumed, and
# checks what it wrote.
