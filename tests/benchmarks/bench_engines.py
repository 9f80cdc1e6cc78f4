"""Generated tokens per second and prefix-cache hit rate: the HF engine against vLLM, same model, same prompts, same run.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_engines.py                            # a tiny random Writer
    OMP_NUM_THREADS=2 python tests/benchmarks/bench_engines.py --model runs/smollm2-135m --new-tokens 24

The engines take turns, so that a busy machine slows both; the table gives each one's best and median turn in wall and CPU
seconds. Prompts come in groups that share a prefix (system prompt, roster, messages) and differ after it, as at a later
writing position. Follower reuse is the share of the block-rounded common prefix of the G - 1 followers of each group that was
read from the cache; the HF engine has no cache across calls, and shares only the reading of identical prompts.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rollout.engine import GenerationRequest, SamplingParams
from rollout.seeds import request_seed


def random_writer(folder: str, tokenizer_size: int = 1400) -> None:
    """A Writer of the demo's shape with random weights, peaked like a trained one, that never stops early."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from tests.rollout.conftest import make_tokenizer

    torch.manual_seed(0)
    shape = dict(hidden_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, intermediate_size=384)
    config = Qwen2Config(
        vocab_size=tokenizer_size, max_position_embeddings=2048, tie_word_embeddings=False, bos_token_id=None, eos_token_id=2,
        pad_token_id=3, **shape,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight.mul_(20)
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)


def grouped_prompts(groups: int, size: int, shared: int, own: int, vocabulary: int) -> list[tuple[int, ...]]:
    """``groups`` x ``size`` prompts of ``shared`` common tokens and about ``own`` of their own."""
    rng = random.Random(0)
    prompts = []
    for _ in range(groups):
        prefix = tuple(rng.randrange(4, vocabulary) for _ in range(shared))
        prompts += [
            prefix + tuple(rng.randrange(4, vocabulary) for _ in range(rng.randint(own // 2, own * 3 // 2))) for _ in range(size)
        ]
    return prompts


def one_turn(engine, requests) -> dict[str, float]:
    """Wall and CPU seconds of one call, with the engine's own counts."""
    engine.metrics()
    wall, cpu = time.perf_counter(), time.process_time()
    engine.generate(requests)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    counts = engine.metrics()
    return {
        "wall": counts["generated_tokens"] / wall,
        "cpu": counts["generated_tokens"] / max(cpu, 1e-9),
        "cached": counts.get("cached_prompt_tokens", 0.0),
        "hit_rate": counts.get("prefix_cache_hit_rate", 0.0),
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a Hugging Face folder (a tiny random Writer)")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--shared-tokens", type=int, default=140)
    parser.add_argument("--own-tokens", type=int, default=40)
    parser.add_argument("--new-tokens", type=int, default=60)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from rollout.hf_engine import HFEngine
    from rollout.vllm_engine import CPU_BLOCK_SIZE, VLLMEngine

    with tempfile.TemporaryDirectory() as scratch:
        folder = options.model or scratch
        if not options.model:
            random_writer(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        context = options.shared_tokens + 2 * options.own_tokens + options.new_tokens + CPU_BLOCK_SIZE
        engines = {
            "hf": HFEngine(model, tokenizer),
            "vllm": VLLMEngine(folder, tokenizer, max_model_len=context),
        }
        prompts = grouped_prompts(
            options.groups, options.group_size, options.shared_tokens, options.own_tokens, model.config.vocab_size
        )
        sampling = SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=options.new_tokens)
        turns = {name: [] for name in engines}
        for turn in range(options.turns + 1):
            for name, engine in engines.items():
                requests = [
                    GenerationRequest(prompt, request_seed(turn, "bench", i, 0, 0), sampling) for i, prompt in enumerate(prompts)
                ]
                if name == "vllm":
                    engine._llm.reset_prefix_cache()  # every turn starts as after a weight sync
                measured = one_turn(engine, requests)
                if turn:  # the first turn warms up
                    turns[name].append(measured)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        for engine in engines.values():
            engine.close()

    print(f"{parameters:,} parameters, {len(prompts)} requests, {torch.get_num_threads()} thread(s)")
    print(f"{'engine':8}{'tokens/s':>10}{'median':>10}{'per CPU s':>11}{'hit rate':>10}{'follower reuse':>16}")
    reusable = options.groups * (options.group_size - 1) * (options.shared_tokens // CPU_BLOCK_SIZE) * CPU_BLOCK_SIZE
    for name, measured in turns.items():
        wall = [turn["wall"] for turn in measured]
        cached = statistics.median(turn["cached"] for turn in measured)
        print(
            f"{name:8}{max(wall):10.0f}{statistics.median(wall):10.0f}"
            f"{statistics.median(turn['cpu'] for turn in measured):11.0f}"
            f"{statistics.median(turn['hit_rate'] for turn in measured):10.1%}{cached / max(reusable, 1):16.1%}"
        )
    ratios = [v["wall"] / h["wall"] for h, v in zip(turns["hf"], turns["vllm"], strict=True)]
    cpu = [v["cpu"] / h["cpu"] for h, v in zip(turns["hf"], turns["vllm"], strict=True)]
    print(f"vllm / hf, pairwise median: {statistics.median(ratios):.2f} (wall), {statistics.median(cpu):.2f} (CPU)")


if __name__ == "__main__":
    main()
