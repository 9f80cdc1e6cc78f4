"""Ask a memory that launch/remember.py has built: `writer-rl memory ask` as a script (writer_rl/memory/cli_ask.py)."""

from launch.cli import run
from writer_rl.memory.cli import script


def main(argv: list[str]) -> int | None:
    """Run the command."""
    return script("ask", argv)


if __name__ == "__main__":
    run(main)
