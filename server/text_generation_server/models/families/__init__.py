"""One file a model family: a pure function from a Hugging Face configuration to a decoder spec and its weight names."""
