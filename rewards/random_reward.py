"""A reward that knows nothing, for controls: what training gains from it is not the rewards' doing.

    reward:
      modules: [rewards.random_reward]
      terms: {random: 1.0}
      weights: {valid: 0, mem: 0, qa: 0, invalid_json: 0, invalid_action: 0, too_many_actions: 0, length_limit: 0}
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rewards.terms import reward_term


@reward_term("random")
def random_reward(actions: Any, report: Any, pre_state: Any, post_state: Any, reference: Any) -> float:
    """A number in [0, 1) that follows from the actions and the memory they met alone: the same whenever it is computed again.

    Equal actions upon equal memories are equal; anything else is a new draw.
    """
    met = [record.entry_id for record in pre_state.derived()], len(pre_state.verbatim())
    digest = hashlib.blake2b(json.dumps([actions, met], sort_keys=True).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") / 2**64
