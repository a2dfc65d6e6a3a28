"""Train a Sentence-BERT: pairs of sentences that mean the same, a recipe, and a model folder at the end."""

# %% [markdown]
# This needs the extra `train`: `pip install 'munjang[train]'`. `data/paraphrases.csv` holds forty pairs that
# mean the same. In a batch, each sentence has one right partner, and the partners of all others are wrong
# answers. The model learns to find the right one.
#
# The model here is a toy: two layers, made from nothing, so that the example takes seconds. It learns these
# pairs and no language. In earnest start from a model that knows your language (`base` instead of `scratch`),
# take thousands of pairs, and keep other pairs for the test.

# %%
import tempfile
from pathlib import Path

from munjang import SentenceEncoder
from munjang.train import train
from munjang.train.recipe import make_recipe

HERE = Path(__file__).parent
OUTPUT = Path(tempfile.mkdtemp()) / "my-sbert"

# %% [markdown]
# A recipe says everything about a training. It is usually a TOML file (`munjang train recipe.toml`); from
# Python a mapping does.

# %%
recipe = make_recipe(
    {
        "output": str(OUTPUT),
        "seed": 7,
        "model": {"scratch": {"vocabulary": 600, "layers": 2, "width": 64, "heads": 2, "inner": 128}, "pooling": "mean", "dropout": 0.0},
        "stage": [
            {
                "name": "paraphrases",
                "objective": "in_batch",
                "epochs": 20,
                "batch_size": 20,
                "learning_rate": 2e-3,
                "data": [{"path": str(HERE / "data/paraphrases.csv"), "kind": "pairs", "texts": ["text", "same"]}],
            }
        ],
    }
)
result = train(recipe)
losses = [step.loss for step in result.log.steps]
print(f"{len(losses)} steps, loss {losses[0]:.2f} at first and {losses[-1]:.2f} in the end")

# %% [markdown]
# ## What came of it
# A folder as sentence-transformers writes it, with a model card and a report.

# %%
print(sorted(path.name for path in OUTPUT.iterdir()))
model = SentenceEncoder.load(OUTPUT)
vectors = model.encode(["Where is my parcel?", "My package has not arrived yet.", "The film was boring."])
print(model.similarity(vectors[:1], vectors[1:]).round(2))
