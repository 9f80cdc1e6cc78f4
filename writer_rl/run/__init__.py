"""What a run leaves behind, and what it needs: its directory, its figures, its machine."""
