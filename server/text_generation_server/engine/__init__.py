"""Runs steps: rows, inputs, forward pass, sampling."""
