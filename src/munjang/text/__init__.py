"""Text as it comes in: Unicode policy, tokenizers, windows, batches, readers."""
