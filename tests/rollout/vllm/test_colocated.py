"""Two ranks, each with its own in-process vLLM engine beside one gloo process group that belongs to the trainer."""

import os
import socket
import subprocess
import sys
import textwrap

import pytest

from tests.conftest import PATIENCE

SCRIPT = textwrap.dedent("""
    import os, sys
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    from rollout.engine import EngineDied
    from rollout.sync import module_logprobs, sync_and_probe
    from rollout.vllm.engine import VLLMEngine
    from rollout.weights import named_weights
    from tests.rollout.conftest import make_model, make_tokenizer
    from tests.rollout.vllm.test_engine import PROBE, SHAPE, requests, shake

    # What vllm 0.33 does and 0.32 does not: the executor's shutdown destroys vLLM's groups, and making them is collective.
    from vllm.distributed import parallel_state
    from vllm.v1.executor.uniproc_executor import UniProcExecutor
    shut_down = UniProcExecutor.shutdown
    UniProcExecutor.shutdown = lambda self: (shut_down(self), parallel_state.destroy_model_parallel())

    def worst(value):
        tensor = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        return tensor.item()

    trainer = make_model(seed=1, **SHAPE)
    engine = VLLMEngine(sys.argv[1], make_tokenizer(), max_model_len=256)
    for version in (1, 2):
        torch.manual_seed(version)
        shake(trainer)
        sync_and_probe(engine, named_weights(trainer), version, PROBE, module_logprobs(trainer), reduce_max=worst)
    batch = requests(4)
    before = [g.token_ids for g in engine.generate(batch)]

    # One rank's engine dies; it alone restarts, and the trainer's group still works.
    if rank == 1:
        real = engine._llm.generate
        engine._llm.generate = lambda *a, **k: (_ for _ in ()).throw(RuntimeError("lost"))
        try:
            engine.generate(batch)
            raise AssertionError("the death went unnoticed")
        except EngineDied:
            engine.restart()
    assert worst(float(rank)) == 1.0
    sync_and_probe(engine, named_weights(trainer), 2, PROBE, module_logprobs(trainer), reduce_max=worst)
    assert [g.token_ids for g in engine.generate(batch)] == before
    engine.close()
    assert dist.is_initialized() and worst(float(rank)) == 1.0, "the trainer's group outlives the engine"
    print("all well", rank, flush=True)
    dist.barrier()
    os._exit(0)
""")


@pytest.mark.vllm
@pytest.mark.ranks
def test_two_ranks_with_engines_of_their_own(tmp_path, tokenizer, repository):
    from tests.rollout.conftest import make_model
    from tests.rollout.vllm.test_engine import SHAPE, save

    folder = save(make_model(**SHAPE), tokenizer, tmp_path / "model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(2):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "PYTHONPATH": str(repository),
        }
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, folder],
                env=environment,
                cwd=repository,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        for rank, process in enumerate(ranks):
            output, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0 and f"all well {rank}" in output, output[-3000:]
    finally:
        for process in ranks:
            process.kill()
