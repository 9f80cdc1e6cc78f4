"""CPU seconds of one policy update (reference, two epochs) against bare PyTorch loops that do the same work.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_trainer.py [--samples 96] [--repeats 5] [--stage 0]

The tiny Writer's architecture with random weights; prompts of 40-230 tokens (mean 117), completions of 10-66 (mean 34). Three
trainers, alternating in one process, CPU time of this process, the first update of each not counted:

    trainer        writer_rl.grpo.update: sorted micro-batches by token budget, no logits but the completion's, pi_old from epoch 1
    bare, same     plain PyTorch on the same micro-batches with the same forwards and a full [B, L, V] softmax
    bare, usual    what a plain implementation does: samples in order, batches of 16, an attention mask, an own pass for pi_old

Before any timing the three gradients of one update must agree. Tokens/s: prompt and completion tokens, once per epoch.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from writer_rl.train.distributed import connect, prepare_environment

prepare_environment()
import torch  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

from writer_rl.config import ROOT, GRPOTrainer  # noqa: E402
from writer_rl.grpo.objective import clipped_grpo  # noqa: E402
from writer_rl.grpo.samples import Sample  # noqa: E402
from writer_rl.grpo.update import update_policy  # noqa: E402
from writer_rl.model.batching import length, micro_batches  # noqa: E402
from writer_rl.model.policy import Policy  # noqa: E402
from writer_rl.train.backend import Backend  # noqa: E402

PROTOTYPE = 3_100  # tokens/s per thread of the prototype's update (two epochs, an own pass for pi_old)
USUAL_BATCH = 16


def make_model(seed: int):
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(ROOT / "configs" / "tiny_writer"), dtype=torch.float32)


def make_samples(count: int, vocabulary: int) -> list[Sample]:
    dice = random.Random(0)

    def ids(low: int, mode: int, high: int) -> tuple[int, ...]:
        return tuple(dice.randrange(vocabulary) for _ in range(round(dice.triangular(low, high, mode))))

    drawn = []
    for number in range(count):
        completion = ids(10, 26, 66)
        drawn.append(
            Sample("n", number, 0, ids(40, 81, 230), completion, (-1.0,) * len(completion), dice.choice([-1.5, 0.5, 1.0]))
        )
    return drawn


class Bare:
    """A plain loop over fixed groups of samples."""

    def __init__(self, samples: list[Sample], groups: list[list[int]], own_old_pass: bool, masked: bool, rate: float) -> None:
        self.model, self.reference = make_model(0), make_model(1).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate, weight_decay=0.0, fused=True)
        self.batches = [self._pad([samples[i] for i in group]) for group in groups]
        self.samples, self.own_old_pass, self.masked = samples, own_old_pass, masked

    def update(self, epochs: int = 2, step: bool = True) -> None:
        with torch.no_grad():
            fixed = [self._logp(self.reference, batch) for batch in self.batches]
            old = [self._logp(self.model, batch) if self.own_old_pass else None for batch in self.batches]
        for _ in range(epochs):
            for index, batch in enumerate(self.batches):
                logp = self._logp(self.model, batch)
                old[index] = logp.detach() if old[index] is None else old[index]
                result = clipped_grpo(logp, old[index], fixed[index], batch["advantages"], batch["targets_mask"])
                (result.loss * len(batch["advantages"]) / len(self.samples)).backward()
            if step:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()

    def _logp(self, model, batch):
        mask = batch["attention_mask"] if self.masked else None
        logits = model(input_ids=batch["input_ids"], attention_mask=mask, use_cache=False).logits[:, :-1]
        return torch.log_softmax(logits, -1).gather(-1, batch["input_ids"][:, 1:, None])[..., 0]

    @staticmethod
    def _pad(samples: list[Sample]) -> dict[str, torch.Tensor]:
        width = max(map(length, samples))
        ids = torch.zeros(len(samples), width, dtype=torch.long)
        attended = torch.zeros_like(ids)
        scored = torch.zeros(len(samples), width - 1, dtype=torch.bool)
        for row, sample in enumerate(samples):
            ids[row, : length(sample)] = torch.tensor([*sample.prompt_ids, *sample.completion_ids])
            attended[row, : length(sample)] = 1
            scored[row, len(sample.prompt_ids) - 1 : length(sample) - 1] = True
        advantages = torch.tensor([sample.advantage for sample in samples])
        return {"input_ids": ids, "attention_mask": attended, "targets_mask": scored, "advantages": advantages}


def check_gradients(trainer: Backend, reference: Policy, settings: GRPOTrainer, bare: list[Bare], samples: list[Sample]) -> None:
    """All three gradients of a first epoch agree, or the timing would compare different work."""
    seen = {}

    def look() -> None:
        seen.update({name: p.grad.clone() for name, p in trainer.policy.model.named_parameters()})
        raise StopIteration

    real_step, trainer.step = trainer.step, lambda lr_factor=1.0: look()
    try:
        update_policy(trainer, reference, samples, settings)
    except StopIteration:
        pass
    finally:
        trainer.step = real_step
        trainer.discard()
    for loop in bare:
        loop.update(epochs=1, step=False)
        worst = max(
            ((p.grad - seen[name]).abs().max() / seen[name].abs().max()).item() for name, p in loop.model.named_parameters()
        )
        loop.optimizer.zero_grad()
        assert worst < 1e-4, f"gradients differ by {worst:.1e}"
        print(f"gradients agree to {worst:.0e}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--samples", type=int, default=96)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--stage", type=int, default=0, help="ZeRO stage of the trainer")
    options.add_argument("--budget", type=int, default=2048, help="trainer.micro_batch_tokens")
    chosen = options.parse_args()
    world = connect(threads=1)
    settings = GRPOTrainer(lr=1e-4, kl_limit=None, micro_batch_tokens=chosen.budget, zero_stage=chosen.stage)
    vocabulary = make_model(0).config.vocab_size
    samples = make_samples(chosen.samples, vocabulary)
    tokens = sum(map(length, samples))
    reference = Policy(make_model(1)).requires_grad_(False)
    trainer = Backend(Policy(make_model(0)), settings, world)
    usual = [list(range(i, min(i + USUAL_BATCH, len(samples)))) for i in range(0, len(samples), USUAL_BATCH)]
    same = Bare(samples, micro_batches(samples, chosen.budget), own_old_pass=False, masked=False, rate=settings.lr)
    plain = Bare(samples, usual, own_old_pass=True, masked=True, rate=settings.lr)
    if chosen.stage == 0:
        check_gradients(trainer, reference, settings, [same, plain], samples)
    rows = {
        "trainer": lambda: update_policy(trainer, reference, samples, settings),
        "bare, same": same.update,
        "bare, usual": plain.update,
    }
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for repeat in range(chosen.repeats + 1):
        for name, run in rows.items():
            started = time.process_time()
            run()
            if repeat:
                seconds[name].append(time.process_time() - started)
    parameters = sum(p.numel() for p in trainer.policy.model.parameters())
    print(
        f"\n{parameters:,} parameters, {len(samples)} samples, {tokens:,} tokens, {settings.epochs} epochs, ZeRO {chosen.stage}"
    )
    print(f"{'':<14}{'CPU s/update':>14}{'tokens/s':>12}{'against trainer':>18}")
    for name, values in seconds.items():
        ratio = statistics.median(v / t for v, t in zip(values, seconds["trainer"], strict=True))
        median = statistics.median(values)
        print(f"{name:<14}{median:>14.2f}{tokens * settings.epochs / median:>12,.0f}{ratio:>17.2f}x")
    print(f"{'prototype':<14}{'':>14}{PROTOTYPE:>12,}")


if __name__ == "__main__":
    main()
