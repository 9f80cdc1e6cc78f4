"""Generated tokens per second and prefix-cache reuse: the HF engine against vLLM, same model, same requests, same run.

    OMP_NUM_THREADS=2 python tests/benchmarks/bench_engines.py                            # the tiny Writer, 64 requests a call
    OMP_NUM_THREADS=2 python tests/benchmarks/bench_engines.py --model runs/smollm2-135m --prompt configs/prompts/writer.jinja \\
        --positions 1 --new-tokens 24 --turns 2

The requests are a round's: the HF engine writes `--networks` conversations `--group-size` times, and every call it gets is
kept (prompts, seeds, settings). Both engines then answer these calls in turns, one call per writing position, so that a busy
machine slows both alike. Before each turn vLLM's prefix cache is emptied, as a weight sync does. The first turn warms up.

Tokens/s: all new tokens of a turn by its wall time, best and median turn. Follower reuse: each group but its first member
shares a beginning with the others; of that, rounded down to blocks, the part that was read from vLLM's cache. The HF engine
computes each distinct prompt token of a call once; from call to call it keeps nothing here (in a round it does).
Equal work, transformers.generate and other sizes: bench_rollouts.py.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rollout.engine import SamplingParams

ROOT = Path(__file__).resolve().parents[2]


class Recorder:
    """The calls that an engine gets while a round is written with it."""

    policy_version = 0

    def __init__(self, engine):
        self.engine, self.calls = engine, []

    def generate(self, requests):
        self.calls.append(list(requests))
        return self.engine.generate(requests)


def recorded_calls(engine, tokenizer, prompt_file: str, context: int, options) -> list[list]:
    """One list of requests per writing position; the networks x group members of each stand in one order."""
    from memory_env import PromptTemplate, corpus
    from rollout.sampler import sample_groups
    from rollout.writer_prompt import WriterPrompt

    prompt = WriterPrompt(tokenizer, PromptTemplate.load(prompt_file), context - options.new_tokens)
    networks = [n for n in corpus.train_networks() if len(n.segments()) >= options.positions][: options.networks]
    networks = [replace(n, sessions=n.sessions[: options.positions]) for n in networks]
    recorder = Recorder(engine)
    sampling = SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=options.new_tokens)
    sample_groups(networks, recorder, prompt, options.group_size, sampling, 0)
    return recorder.calls


def one_turn(engine, calls) -> dict[str, float]:
    """Tokens per wall and per CPU second of a turn, with the engine's own counts."""
    engine.metrics()
    wall, cpu = time.perf_counter(), time.process_time()
    for requests in calls:
        engine.generate(requests)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    counts = engine.metrics()
    tokens = counts["generated_tokens"]
    return {
        "wall": tokens / wall,
        "cpu": tokens / max(cpu, 1e-9),
        "tokens": tokens,
        "hits": counts.get("prefix_cache_hit_rate", 0),
    }


class CachedTokens:
    """How many prompt tokens of each request vLLM read from its cache."""

    def __init__(self, engine):
        self.calls, self._generate = [], engine._llm.generate
        engine._llm.generate = self

    def __call__(self, *arguments, **keywords):
        outputs = self._generate(*arguments, **keywords)
        self.calls.append([output.num_cached_tokens or 0 for output in outputs])
        return outputs


def follower_reuse(calls, cached, size: int, block: int) -> float:
    """Of the block-rounded common beginnings of all groups, what the followers read from the cache."""
    reused = reusable = 0
    for requests, hits in zip(calls, cached, strict=True):
        for start in range(0, len(requests), size):
            prompts = [request.prompt_ids for request in requests[start : start + size]]
            # The last prompt token is always computed: its logits start the completion.
            shared = min(len(os.path.commonprefix(prompts)), min(map(len, prompts)) - 1) // block * block
            reused += sum(min(hit, shared) for hit in hits[start + 1 : start + size])
            reusable += (size - 1) * shared
    return reused / max(reusable, 1)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "configs" / "tiny_writer"), help="a Hugging Face folder (the tiny Writer)")
    parser.add_argument("--prompt", default=str(ROOT / "configs" / "prompts" / "tiny_writer.jinja"), help="its prompt file")
    parser.add_argument("--networks", type=int, default=8, help="conversations of a round (8)")
    parser.add_argument("--group-size", type=int, default=8, help="trajectories of each (8: 64 requests a call)")
    parser.add_argument("--positions", type=int, default=5, help="writing positions (5)")
    parser.add_argument("--new-tokens", type=int, default=384, help="limit of a completion (384)")
    parser.add_argument("--turns", type=int, default=5, help="measured turns of each engine (5)")
    parser.add_argument("--profile", choices=("hf", "vllm"), help="where this engine's time goes, instead of the comparison")
    options = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM

    from rollout.hf.engine import HFEngine
    from rollout.tokenizer_file import load_as_written
    from rollout.vllm.arguments import CPU_BLOCK_SIZE
    from rollout.vllm.engine import VLLMEngine

    tokenizer = load_as_written(options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    context = min(model.config.max_position_embeddings, 4096)
    vllm = VLLMEngine(options.model, tokenizer, max_model_len=context)
    engines = {"hf": HFEngine(model, tokenizer), "vllm": vllm}
    cached = CachedTokens(vllm)
    calls = recorded_calls(engines["hf"], tokenizer, options.prompt, context, options)
    if options.profile:
        profile(engines[options.profile], calls)
        return
    turns = {name: [] for name in engines}
    for turn in range(options.turns + 1):
        for name, engine in engines.items():
            cached.calls.clear()
            vllm._llm.reset_prefix_cache()
            measured = one_turn(engine, calls)
            if turn:
                turns[name].append(measured)
    reuse = {"vllm": follower_reuse(calls, cached.calls, options.group_size, CPU_BLOCK_SIZE)}
    for engine in engines.values():
        engine.close()
    report(turns, reuse, calls, sum(parameter.numel() for parameter in model.parameters()), torch.get_num_threads())


def report(turns, reuse, calls, parameters: int, threads: int) -> None:
    """Print the table."""
    prompts = [len(request.prompt_ids) for requests in calls for request in requests]
    new = ", ".join(f"{name} {measured[0]['tokens']:.0f}" for name, measured in turns.items())
    print(
        f"{parameters:,} parameters, {len(calls)} calls of {len(calls[0])} requests, prompts of {statistics.mean(prompts):.0f} "
        f"tokens, new tokens of a turn {new}, {threads} thread(s)"
    )
    print(f"{'engine':8}{'tokens/s':>10}{'median':>10}{'per CPU s':>11}{'hit rate':>10}{'follower reuse':>16}")
    for name, measured in turns.items():
        wall = [turn["wall"] for turn in measured]
        print(
            f"{name:8}{max(wall):10.0f}{statistics.median(wall):10.0f}"
            f"{statistics.median(turn['cpu'] for turn in measured):11.0f}"
            f"{statistics.median(turn['hits'] for turn in measured):10.1%}"
            f"{f'{reuse[name]:.1%}' if name in reuse else '-':>16}"
        )
    ratios = [v["wall"] / h["wall"] for h, v in zip(turns["hf"], turns["vllm"], strict=True)]
    cpu = [v["cpu"] / h["cpu"] for h, v in zip(turns["hf"], turns["vllm"], strict=True)]
    print(f"vllm / hf, pairwise median: {statistics.median(ratios):.2f} (wall), {statistics.median(cpu):.2f} (CPU)")


def profile(engine, calls) -> None:
    """Python's view of one turn after a warm one: where the engine's own time goes."""
    one_turn(engine, calls)
    profiler = cProfile.Profile()
    profiler.runcall(one_turn, engine, calls)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
