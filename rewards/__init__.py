"""What a memory state is worth: the local rewards of the paper's Appendix E and the terminal question gain."""

from rewards.chain import chain_reward
from rewards.qa_gain import qa_gain, select_questions
from rewards.qa_results import QAFailure, QAGain, QAGroup
from rewards.scorer import Scorer
from rewards.similarity import text_similarity
from rewards.speaker import SpeakerMatch, speaker_levenshtein
from rewards.step_reward import StepReward, score_step
from rewards.tokens import unseen_text_share
from rewards.weights import RewardWeights

__all__ = [
    "QAFailure",
    "QAGain",
    "QAGroup",
    "RewardWeights",
    "Scorer",
    "SpeakerMatch",
    "StepReward",
    "chain_reward",
    "qa_gain",
    "score_step",
    "select_questions",
    "speaker_levenshtein",
    "text_similarity",
    "unseen_text_share",
]
