"""The vLLM engine, in this process or behind a server."""
