"""Preparation of a model before it is served: find it, fetch or convert it, check it, and say where it lies."""
