"""The product: a living memory of a group chat, and who writes it."""
