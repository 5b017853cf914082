"""Reading of GGUF files, and their conversion into Hugging Face model folders."""
