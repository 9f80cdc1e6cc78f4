"""The language of the training, held-out, validation and practice conversations."""

from __future__ import annotations

from memory_env.corpus import lexicon
from memory_env.corpus import wording_chat as chat
from memory_env.corpus import wording_group as group
from memory_env.corpus import wording_person as person
from memory_env.corpus.phrasebook import Phrasebook

HOME = Phrasebook(
    name="home",
    names=lexicon.NAMES,
    days=lexicon.DAYS,
    spots=lexicon.SPOTS,
    topics=lexicon.TOPICS,
    events=lexicon.EVENTS,
    rules=lexicon.RULES,
    occasions=lexicon.OCCASIONS,
    values=lexicon.VALUES,
    relations=lexicon.RELATIONS,
    self_add=person.SELF_ADD,
    self_change=person.SELF_CHANGE,
    stance_add=person.STANCE_ADD,
    stance_change=person.STANCE_CHANGE,
    observation_add=person.OBSERVATION_ADD,
    report_add=person.REPORT_ADD,
    event_add=group.EVENT_ADD,
    event_change=group.EVENT_CHANGE,
    dish_add=group.DISH_ADD,
    dish_change=group.DISH_CHANGE,
    relation_add=group.RELATION_ADD,
    norm_add=group.NORM_ADD,
    exception_add=group.EXCEPTION_OTHER,
    join_add=person.JOIN_ADD,
    leave_self=person.LEAVE_SELF,
    leave_reported=person.LEAVE_REPORTED,
    chat=chat.CHAT,
    chat_to=chat.CHAT_TO,
    self_trap=chat.SELF_TRAP,
    other_trap=chat.OTHER_TRAP,
    stance_trap=chat.STANCE_TRAP,
    event_trap=chat.EVENT_TRAP,
    dish_trap=chat.DISH_TRAP,
    norm_trap=chat.NORM_TRAP,
    relation_trap=chat.RELATION_TRAP,
)
