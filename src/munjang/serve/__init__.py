"""HTTP over everything: vectors, scores, libraries and analyses, in the dialects that clients already speak."""
