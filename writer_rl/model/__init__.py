"""The model that is trained: policy, adapters, tokenizer, shapes."""
