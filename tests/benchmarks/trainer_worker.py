"""One trainer of bench_trainer.py in a process of its own: TRAINER FOLDER BUDGET; the folder holds samples.json, policy/, reference/.

Two updates; the last line says what the second cost. BENCH_PATH names the folder that holds TRL, or another checkout.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
UPDATES = 2
LEARNING_RATE, CLIP, KL_COEF = 1e-4, 0.2, 0.1
USUAL_BATCH = 16
TRL_BATCHES = (16, 8, 4, 2, 1)


class Meter:
    """Seconds, tokens forwarded and memory of the update that counts."""

    def __init__(self) -> None:
        self.forwarded = 0
        self.marks: list[tuple[float, int]] = []
        self.base = self.peak()

    def count(self, module: Any, _: Any, options: dict[str, Any]) -> None:
        """A forward pre-hook of the transformer."""
        self.forwarded += options["input_ids"].numel()

    def mark(self) -> None:
        """An update begins or ends here."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.synchronize()
        clock = time.perf_counter() if torch.cuda.is_available() else time.process_time()
        self.marks.append((clock, self.forwarded))

    @staticmethod
    def peak() -> float:
        """MiB this process held at most so far (on a GPU: what torch held)."""
        import torch

        if torch.cuda.is_available():
            return torch.cuda.max_memory_allocated() / 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def report(self, grad_norms: list[float]) -> None:
        """The one line for the parent."""
        (begun, before), (ended, after) = self.marks[-2:]
        peak = self.peak() - self.base
        figures = {"seconds": ended - begun, "forwarded": after - before, "peak_mib": peak, "grad_norms": grad_norms}
        print("RESULT " + json.dumps(figures), flush=True)


def load(folder: Path, name: str) -> Any:
    """A saved model in float32 with sdpa."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32, attn_implementation="sdpa")


def ours(folder: Path, packing: str, budget: int) -> None:
    """This trainer, through DeepSpeed."""
    from writer_rl.train.distributed import connect, prepare_environment

    prepare_environment()
    from writer_rl.config import GRPOTrainer
    from writer_rl.grpo.samples import Sample
    from writer_rl.grpo.update import update_policy
    from writer_rl.model.policy import Policy
    from writer_rl.train.backend import Backend

    options = {"packing": packing, "micro_batch_tokens": budget or None}
    replay(folder, connect(threads=1), GRPOTrainer, options, Policy, Backend, Sample, update_policy)


def baseline(folder: Path, budget: int) -> None:
    """Another checkout's trainer, one from before the rooms of writer_rl."""
    from writer_rl.distributed import connect, prepare_environment

    prepare_environment()
    from writer_rl.backend import Backend
    from writer_rl.policy import Policy
    from writer_rl.samples import Sample
    from writer_rl.update import update_policy

    from writer_rl.config import GRPOTrainer

    options = {"micro_batch_tokens": budget or 1024}
    replay(folder, connect(threads=1), GRPOTrainer, options, Policy, Backend, Sample, update_policy)


def replay(
    folder: Path, world: Any, section: Any, options: dict[str, Any], policy: Any, backend: Any, sample: Any, update: Any
) -> None:
    """Updates of a writer_rl trainer."""
    rows = json.loads((folder / "samples.json").read_text())
    samples = [sample(**{name: tuple(value) if isinstance(value, list) else value for name, value in r.items()}) for r in rows]
    settings = section(lr=LEARNING_RATE, clip=CLIP, kl_coef=KL_COEF, epochs=2, kl_limit=None, zero_stage=0, **options)
    reference = policy(load(folder, "reference")).requires_grad_(False).to(world.device)
    trainer = backend(policy(load(folder, "policy")), settings, world)
    meter, norms = Meter(), []
    for model in (reference.model, trainer.policy.model):
        model.base_model.register_forward_pre_hook(meter.count, with_kwargs=True)
    meter.mark()
    for _ in range(UPDATES):
        norms += [epoch.grad_norm for epoch in update(trainer, reference, samples, settings).epochs]
        meter.mark()
    meter.report(norms)


def bare(folder: Path) -> None:
    """A plain loop; its objective written out."""
    import torch
    from torch import Tensor

    rows = json.loads((folder / "samples.json").read_text())
    policy, reference = load(folder, "policy").train(), load(folder, "reference").requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, weight_decay=0.0, fused=True)
    batches = []
    for start in range(0, len(rows), USUAL_BATCH):
        group = [
            (r["prompt_ids"] + r["completion_ids"], len(r["prompt_ids"]), r["advantage"])
            for r in rows[start : start + USUAL_BATCH]
        ]
        width = max(len(ids) for ids, _, _ in group)
        ids, seen = torch.zeros(len(group), width, dtype=torch.long), torch.zeros(len(group), width, dtype=torch.long)
        scored = torch.zeros(len(group), width - 1)
        for row, (tokens, prompt, _) in enumerate(group):
            ids[row, : len(tokens)], seen[row, : len(tokens)] = torch.tensor(tokens), 1
            scored[row, prompt - 1 : len(tokens) - 1] = 1
        batches.append((ids, seen, scored, torch.tensor([advantage for _, _, advantage in group])[:, None]))

    def logprobs(model: Any, ids: Tensor, seen: Tensor) -> Tensor:
        logits = model(input_ids=ids, attention_mask=seen, use_cache=False).logits[:, :-1]
        return logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]

    meter, norms = Meter(), []
    for model in (policy, reference):
        model.base_model.register_forward_pre_hook(meter.count, with_kwargs=True)
    meter.mark()
    for _ in range(UPDATES):
        with torch.no_grad():
            fixed = [(logprobs(policy, ids, seen), logprobs(reference, ids, seen)) for ids, seen, _, _ in batches]
        for _ in range(2):
            for (ids, seen, scored, advantages), (old, ref) in zip(batches, fixed, strict=True):
                logp = logprobs(policy, ids, seen)
                ratio = (logp - old).exp()
                gain = torch.minimum(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)
                kl = (ref - logp).exp() - (ref - logp) - 1
                means = ((gain - KL_COEF * kl) * scored).sum(1) / scored.sum(1)
                (-means.sum() / len(rows)).backward()
            norms.append(float(torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)))
            optimizer.step()
            optimizer.zero_grad()
        meter.mark()
    meter.report(norms)


def trl(folder: Path) -> None:
    """TRL's GRPOTrainer at the largest batch of TRL_BATCHES that divides the samples; advantages are the recorded ones."""
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    import contextlib
    import io

    import pyarrow
    import torch
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    rows = json.loads((folder / "samples.json").read_text())
    meter = Meter()
    advantages = torch.tensor([r["advantage"] for r in rows])

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        meter.mark()
        ids = {key: [r[key] for r in rows] for key in ("prompt_ids", "completion_ids")}
        return {**ids, "logprobs": None}

    class Replay(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            found = super()._generate_and_score_completions(inputs)
            return {**found, "advantages": advantages}

    group = 8
    batch = next(size for size in TRL_BATCHES if len(rows) % size == 0)
    chosen = int(os.environ.get("BENCH_TRL_BATCH", batch))
    settings = GRPOConfig(
        output_dir=str(folder / "trl"),
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        gradient_checkpointing=False,
        disable_dropout=True,
        optim="adamw_torch_fused",
        learning_rate=LEARNING_RATE,
        weight_decay=0.0,
        max_grad_norm=1.0,
        lr_scheduler_type="constant",
        per_device_train_batch_size=chosen,
        gradient_accumulation_steps=len(rows) // chosen,
        num_generations=group,
        num_iterations=2,
        beta=KL_COEF,
        use_bias_correction_kl=False,
        epsilon=CLIP,
        loss_type="grpo",
        scale_rewards="group",
        temperature=1.0,
        max_completion_length=max(len(r["completion_ids"]) for r in rows),
        max_steps=2 * UPDATES,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        shuffle_dataset=False,
        seed=0,
    )
    prompts = pyarrow.table({"prompt": ["x"] * (len(rows) // group)})
    trainer = Replay(
        model=str(folder / "policy"),
        reward_funcs=lambda prompts, completions, **_: [r["advantage"] for r in rows],
        args=settings,
        # Dataset.from_dict hashes its input by pickling, which this pyarrow refuses.
        train_dataset=Dataset(InMemoryTable(prompts), fingerprint="recorded"),
        processing_class=AutoTokenizer.from_pretrained(folder / "policy"),
        rollout_func=rollout,
    )
    trainer.ref_model.load_state_dict(load(folder, "reference").state_dict())
    for model in (trainer.model, trainer.ref_model):
        model.register_forward_pre_hook(meter.count, with_kwargs=True)
    meter.base = meter.peak()
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    meter.mark()
    meter.report([entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry])


def main(trainer: str, folder: Path, budget: int) -> None:
    """Measure one trainer."""
    warnings.filterwarnings("ignore")
    other = os.environ.get("BENCH_PATH")
    sys.path[:0] = [other] if trainer == "baseline" and other else [str(ROOT), *([other] if other else [])]
    import torch

    torch.set_num_threads(1)
    trainers: dict[str, Callable[[], None]] = {
        "tree": lambda: ours(folder, "tree", budget),
        "padded": lambda: ours(folder, "padded", budget),
        "baseline": lambda: baseline(folder, budget),
        "bare": lambda: bare(folder),
        "trl": lambda: trl(folder),
    }
    trainers[trainer]()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3]))
