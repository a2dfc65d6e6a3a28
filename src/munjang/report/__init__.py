"""Self-contained HTML and SVG."""
