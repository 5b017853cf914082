"""The Python side of the server: shards that execute forward passes, and the preparation of models."""
