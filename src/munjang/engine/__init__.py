"""A model folder to vectors or scores, fast, without torch."""
