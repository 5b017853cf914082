"""Vocabularies in other formats, and how each is said in the terms of `tokenizer.json`."""
