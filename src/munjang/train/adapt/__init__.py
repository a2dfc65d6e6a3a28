"""Domain adaptation: a model learns from plain text alone; its objectives, and a vocabulary that can grow."""
