"""The Hugging Face engine: plain transformers models, decoded with our own cache."""
