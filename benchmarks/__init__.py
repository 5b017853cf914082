"""Measurements of the server. Each prints one JSON line, so that figures can be kept and compared."""
