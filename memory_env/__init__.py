"""Speaker-centred dual-track memory of multi-party chats (SpeakerMem-R1): records, states, and the pure step."""

from memory_env.actions import ParsedOutput, max_actions, parse_completion
from memory_env.conversation import Message, Question, Segment, Session
from memory_env.datafile import DataError
from memory_env.loader import load_network, load_networks
from memory_env.network import Network, check_disjoint
from memory_env.observation import Observation, ObservationLimits, observe
from memory_env.prompts import PromptTemplate
from memory_env.records import GROUP, Edge, Record
from memory_env.replay import replay
from memory_env.state import MemoryState
from memory_env.step import Report, step
from memory_env.trajectory import ReferenceState, TeacherTrajectory, load_trajectory, replay_teacher

__all__ = [
    "GROUP",
    "DataError",
    "Edge",
    "MemoryState",
    "Message",
    "Network",
    "Observation",
    "ObservationLimits",
    "ParsedOutput",
    "PromptTemplate",
    "Question",
    "Record",
    "ReferenceState",
    "Report",
    "Segment",
    "Session",
    "TeacherTrajectory",
    "check_disjoint",
    "load_network",
    "load_networks",
    "load_trajectory",
    "max_actions",
    "observe",
    "parse_completion",
    "replay",
    "replay_teacher",
    "step",
]
