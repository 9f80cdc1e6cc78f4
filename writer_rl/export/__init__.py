"""A checkpoint as a plain Hugging Face folder."""
