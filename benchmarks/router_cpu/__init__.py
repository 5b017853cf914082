"""What the router itself costs: its CPU time for each streamed token, against a bare write of the same frame."""
