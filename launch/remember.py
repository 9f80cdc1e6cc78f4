"""Build a memory from a chat export: `writer-rl memory remember` as a script (writer_rl/memory/cli_remember.py)."""

from launch.cli import run
from writer_rl.memory.cli import script


def main(argv: list[str]) -> int | None:
    """Run the command."""
    return script("remember", argv)


if __name__ == "__main__":
    run(main)
