"""The console command `writer-rl`: a memory of group chats, from the command line.

  writer-rl memory remember --memory family.db "WhatsApp Chat with Family.txt"
  writer-rl memory ask --memory family.db "What does Alice think of the new flat?"
  writer-rl memory view family.db
  writer-rl memory forget --memory family.db Alice

`writer-rl memory COMMAND --help` says more of each.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import NoReturn

from writer_rl.command import parser, run
from writer_rl.memory import cli_ask, cli_export, cli_forget, cli_import, cli_remember, cli_serve, cli_view

COMMANDS: dict[str, ModuleType] = {
    "remember": cli_remember,
    "ask": cli_ask,
    "view": cli_view,
    "forget": cli_forget,
    "export": cli_export,
    "import": cli_import,
    "serve": cli_serve,
}
"""By name: a module with `DESCRIPTION`, `add_options(parser)` and `execute(arguments)`."""


def execute(argv: list[str]) -> int | None:
    """Run `writer-rl ARGV`."""
    options = parser(__doc__, prog="writer-rl")
    areas = options.add_subparsers(dest="area", required=True, metavar="memory")
    memory = areas.add_parser("memory", help="remember chats, ask about them, forget, export, serve", allow_abbrev=False)
    commands = memory.add_subparsers(dest="command", required=True, metavar=f"{{{','.join(COMMANDS)}}}")
    for name, module in COMMANDS.items():
        description = module.DESCRIPTION.format(command=f"writer-rl memory {name}")
        added = commands.add_parser(
            name, help=description.splitlines()[0], description=description, allow_abbrev=False,
            formatter_class=options.formatter_class,
        )  # fmt: skip
        module.add_options(added)
    chosen = options.parse_args(argv)
    return COMMANDS[chosen.command].execute(chosen)


def script(name: str, argv: list[str]) -> int | None:
    """Run a memory command as the script `launch/NAME.py` of a checkout."""
    module = COMMANDS[name]
    options = parser(module.DESCRIPTION.format(command=f"python launch/{name}.py"))
    module.add_options(options)
    return module.execute(options.parse_args(argv))


def main() -> NoReturn:
    """The entry point that the package installs."""
    run(execute, sys.argv[1:])
