"""Model descriptions and the one decoder that is built from them."""
