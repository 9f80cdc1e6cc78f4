"""Readers of public benchmarks and everyday chat exports, one file per format.

from memory_env.ingest import read_networks
networks = read_networks("WhatsApp Chat with Family.txt")
"""

from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions
from memory_env.ingest.formats import FORMATS, Source, read_networks, read_source, recognise
from memory_env.ingest.sessions import to_network

__all__ = [
    "FORMATS",
    "Chat",
    "ChatMessage",
    "ReadOptions",
    "Source",
    "read_networks",
    "read_source",
    "recognise",
    "to_network",
]
