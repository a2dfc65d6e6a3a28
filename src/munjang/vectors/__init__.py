"""Arrays in, arrays out: similarity, exact top-k, quantisation."""
