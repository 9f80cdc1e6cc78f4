"""The scripts that people run: `python launch/<script>.py --help`."""
