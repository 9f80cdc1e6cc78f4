"""Search over one memory state: System 1 and System 2, lexical and dense."""
