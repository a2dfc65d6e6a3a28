"""The two objects people hold, and where models are found by name."""
