"""What a model is trained to do: objectives by the kind of data that they learn from, and the table of their names (`registry.py`)."""
