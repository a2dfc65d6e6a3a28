"""Domain adaptation: a model learns from plain text alone. One file an objective, and a vocabulary that grows by the domain's own words."""
