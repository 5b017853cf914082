"""Triton kernels, one a file, each with a reference in plain torch. They know no model."""
