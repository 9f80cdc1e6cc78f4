"""What the words of a round's line and of its metrics mean, said where they stand."""

from __future__ import annotations

SKIPPED = {
    "kl": "the KL exceeded trainer.kl_limit",
    "nonfinite": "loss or gradient was not a finite number",
    "empty": "every position was silent, so that no completion had an advantage",
}
"""Why an update, or the rest of its epochs, was left out."""

ROUND_LINE = {
    "return": "mean of r_t (Eq. 9) over all completions of the round",
    "mem": "mean of R_mem (Eq. 18): how well the memory agrees with the teacher's, 0 to 1",
    "valid": "mean of R_valid (Eq. 19): how well-formed the outputs are, 0 to 1",
    "qa": "mean of R_QA (Eq. 8): what the memory adds to the share of questions answered from the messages alone, -1 to 1",
    "kl": "mean KL of the trained policy against the frozen reference, nats a token (Eq. 26)",
    "clip": "share of the tokens that the clipping held back (Eq. 26)",
    "entropy": "of the policy's next token, in nats; at 0 all trajectories are alike",
    "|g|": "norm of the gradient before it is clipped to trainer.max_grad_norm",
    "silent": "share of the positions where a group's returns are alike (sigma < 0.02): nothing is learnt there",
    "len": "mean length of a completion, in tokens",
    "eval": "the measure of the evaluation on the validation networks",
    **{f"skipped: {reason}": f"no step, or no further one: {why}" for reason, why in SKIPPED.items()},
}
"""Label of the console's line -> its meaning."""

LEGEND = (
    "a round's line: return, mem, valid: mean rewards; qa: question gain; kl: against the reference; clip: clipped tokens; "
    f"|g|: {ROUND_LINE['|g|']}; silent: {ROUND_LINE['silent']}; len: tokens a completion"
)
"""One line for the console, before the first round."""
