"""One random stream per completion, derived from what the completion is, never from when or where it is sampled."""

from __future__ import annotations

import hashlib
import json


def request_seed(run_seed: int, network_id: str, trajectory: int, position: int, policy_version: int, visit: int = 0) -> int:
    """The seed of one completion: 63 bits of SHA-256 over the JSON list of the arguments.

    JSON keeps the fields apart (("a1", 2) and ("a", 12) differ). ``visit`` counts earlier rounds of the same
    network: without it, a network met again under an unchanged policy (every update between was skipped) would
    repeat its rollouts exactly.

    Example: ``request_seed(0, "net_1", trajectory=3, position=0, policy_version=0)`` is the same on every machine.
    """
    coordinates = [run_seed, network_id, trajectory, position, policy_version, visit]
    digest = hashlib.sha256(json.dumps(coordinates, ensure_ascii=True).encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") >> 1
