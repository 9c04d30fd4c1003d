"""Jaxprs as StableHLO: a table of rules by primitive."""
