"""What a memory state is worth: the local rewards of the paper's Appendix E and the terminal question gain."""

from rewards.chain import chain_reward
from rewards.scorer import Scorer
from rewards.similarity import text_similarity
from rewards.speaker import SpeakerMatch, speaker_levenshtein
from rewards.step_reward import StepReward, score_step
from rewards.tokens import unseen_text_share
from rewards.weights import RewardWeights

__all__ = [
    "RewardWeights",
    "Scorer",
    "SpeakerMatch",
    "StepReward",
    "chain_reward",
    "score_step",
    "speaker_levenshtein",
    "text_similarity",
    "unseen_text_share",
]
