"""Show, list, build or verify the embedded corpus (docs/corpus.md).

python launch/corpus.py list                       the frozen networks and their sizes
python launch/corpus.py show heldout_03            one network: messages, the teacher's actions, questions and rubrics
python launch/corpus.py show sft2_0000007 --biased the same with the under-writing teacher's actions
python launch/corpus.py overlap unseen practice    what of the first set occurs in the second
python launch/corpus.py verify                     generate everything again and compare with the committed files
python launch/corpus.py build                      write the committed files (only after a change of the generator)
"""

import sys
from pathlib import Path

from launch.cli import parser, run


def main(argv: list[str]) -> int | None:
    arguments = parser(__doc__)
    commands = arguments.add_subparsers(dest="command", required=True, metavar="{list,show,overlap,verify,build}")
    commands.add_parser("list", help="the frozen networks and their sizes")
    show = commands.add_parser("show", help="one network with the teacher's actions and the questions")
    show.add_argument("network", help="train_real_01, heldout_01, unseen_01, val_<number>, sft<level>_<number> ...")
    show.add_argument("--biased", action="store_true", help="the actions of the teacher that under-writes")
    overlap = commands.add_parser("overlap", help="what two sets share: names, values, wordings, messages, records, questions")
    for place in ("one", "other"):
        overlap.add_argument(place, metavar="SET", help="train, heldout, unseen, validation, practice, practice-45, base or sft")
    verify = commands.add_parser("verify", help="generate again and compare with the files")
    build = commands.add_parser("build", help="write the files")
    for command in (verify, build):
        command.add_argument("--folder", type=Path, help="where the files are (default: those of the package)")
    verify.add_argument("--quick", action="store_true", help="leave the generated SFT set out")
    chosen = arguments.parse_args(argv)
    from memory_env.corpus import frozen
    from memory_env.corpus.conversations import conversation
    from memory_env.corpus.show import listing, overlap_lines, shown

    if chosen.command == "list":
        print("\n".join(listing()))
    elif chosen.command == "show":
        print("\n".join(shown(conversation(chosen.network), chosen.biased)))
    elif chosen.command == "overlap":
        print("\n".join(overlap_lines(chosen.one, chosen.other)))
    elif chosen.command == "verify":
        count = frozen.verify(chosen.folder or frozen.DATA, sft=not chosen.quick, progress=report)
        print(f"{count} files equal what the generator makes")
    else:
        folder = chosen.folder or frozen.DATA
        print(f"{frozen.build(folder, progress=report)} files written to {folder}")
    return None


def report(line: str) -> None:
    """Progress goes to stderr, so that stdout holds the result alone."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
