"""A model folder → a smaller one: fewer pieces, fewer layers, fewer dimensions, half the bytes."""
