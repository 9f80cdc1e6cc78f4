"""The SQLite memory file: both tracks of one memory, and how new messages get into it."""
