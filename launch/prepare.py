"""Bring conversations in, and make teacher data for them (docs/data.md).

  python launch/prepare.py read "WhatsApp Chat with Family.txt" --output data/family
  python launch/prepare.py read socialmembench/ --split paper --output data/social
  python launch/prepare.py teach data/family/networks --model gpt-4.1-mini --output data/family-teacher
  python launch/prepare.py handwritten actions.yaml --network data/family/networks/family.json --output family.json

read        public benchmarks and chat exports become native network files, with an inventory and warnings
teach       an OpenAI-compatible model writes the teacher's actions, checked by the environment; resumable
handwritten actions written by hand (YAML or JSON) become a native trajectory
"""

from argparse import Namespace

from launch.cli import parser, run
from writer_rl.memory.cli_reading import add_reading


def arguments(argv: list[str]) -> Namespace:
    """The parsed command line."""
    options = parser(__doc__)
    commands = options.add_subparsers(dest="command", required=True, metavar="{read,teach,handwritten}")
    one = commands.add_parser("read", help="benchmarks and chat exports to native networks", allow_abbrev=False)
    one.add_argument("source", help="a file, folder, zip archive, or a Hugging Face dataset name")
    one.add_argument("--output", required=True, help="a new folder")
    add_reading(one)
    one.add_argument("--max-messages", type=int, default=50, help="of one session (%(default)s)")
    one.add_argument("--split", choices=("none", "paper"), default="none", help="paper: SocialMemBench's, checked (none)")
    one.add_argument("--heldout", default="", metavar="ID,ID", help="these networks go to heldout/, the rest to train/")
    two = commands.add_parser("teach", help="teacher actions from a model", allow_abbrev=False)
    two.add_argument("networks", help="a network file, or a folder of them")
    two.add_argument("--model", required=True, help="the model's name at the endpoint")
    two.add_argument("--base-url", help="of the endpoint (OPENAI_BASE_URL); the key comes from OPENAI_API_KEY alone")
    two.add_argument("--output", required=True, help="a folder; an interrupted run goes on in it")
    two.add_argument("--prompt", default="configs/prompts/writer.jinja", help="the Writer's prompt file (%(default)s)")
    two.add_argument("--window", type=int, help="messages per segment (one segment per session)")
    two.add_argument("--retries", type=int, default=2, help="refused outputs sent back, per position (%(default)s)")
    two.add_argument("--max-tokens", type=int, default=4096, help="of one answer (%(default)s)")
    two.add_argument("--token-budget", type=int, help="stop once so many tokens were used in all")
    two.add_argument("--concurrency", type=int, default=4, help="networks at a time (%(default)s)")
    three = commands.add_parser("handwritten", help="actions written by hand", allow_abbrev=False)
    three.add_argument("actions", help="a YAML or JSON file")
    three.add_argument("--network", required=True, help="the network file they are about")
    three.add_argument("--window", type=int, help="messages per segment (one segment per session)")
    three.add_argument("--output", required=True, help="the trajectory file to write")
    return options.parse_args(argv)


def main(argv: list[str]) -> None:
    """Run the chosen command."""
    chosen = arguments(argv)
    from launch.preparing import handwritten, read, teach

    {"read": read, "teach": teach, "handwritten": handwritten}[chosen.command](chosen)


if __name__ == "__main__":
    run(main)
