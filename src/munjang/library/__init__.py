"""Documents that can be searched and survive anything: the store, its caches, filters, words and search."""
