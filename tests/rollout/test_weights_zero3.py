"""Weights of a module that DeepSpeed's ZeRO-3 has sharded: gathered group by group, right, and released again."""

import os
import socket
import subprocess
import sys
import textwrap

import pytest

from tests.conftest import PATIENCE

SCRIPT = textwrap.dedent("""
    import deepspeed, torch
    from tests.rollout.conftest import make_model
    from rollout.weights import named_weights
    from rollout.hf.engine import HFEngine
    from tests.rollout.conftest import make_tokenizer

    deepspeed.init_distributed(dist_backend="gloo")
    model = make_model(tie_word_embeddings=True)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    engine, *_ = deepspeed.initialize(model=model, config={
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
    }, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    gathered = []
    real = deepspeed.zero.GatheredParameters
    def recording(parameters, *args, **kwargs):
        gathered.append(sum(p.ds_numel * p.element_size() for p in parameters))
        return real(parameters, *args, **kwargs)
    deepspeed.zero.GatheredParameters = recording
    bound = max(tensor.numel() * 4 for tensor in before.values())
    sent = dict(named_weights(engine, group_bytes=bound))
    assert sent.keys() == before.keys(), sent.keys() ^ before.keys()
    assert all(torch.equal(sent[name], before[name]) for name in before)
    assert len(gathered) > 3 and max(gathered) <= bound, gathered
    assert all(p.numel() == 0 for p in engine.module.parameters()), "shards are released"
    try:
        HFEngine(engine, make_tokenizer())
    except ValueError as error:
        assert "ZeRO-3" in str(error)
    else:
        raise AssertionError("a sharded module was accepted")
    print("all well")
""")


@pytest.mark.ranks
def test_sharded_weights_are_gathered_in_groups_and_released(repository):
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "PYTHONPATH": str(repository),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=repository, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0 and "all well" in done.stdout, done.stdout + done.stderr
