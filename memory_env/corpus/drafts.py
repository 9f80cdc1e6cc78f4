"""Single messages and what they mean: a new fact, a change of a fact, chit-chat, a trap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memory_env.corpus import lexicon
from memory_env.corpus import wording_group as group
from memory_env.corpus import wording_person as person
from memory_env.corpus.dice import Dice
from memory_env.corpus.phrasebook import Phrasebook
from memory_env.corpus.plan import Fact, Trap, Utterance
from memory_env.records import GROUP

CORE, PROFILE = "per_speaker_core", "per_speaker_profile"
INTERACTION, INSIGHT = "group_interaction", "group_insight"
CHANGEABLE = ("self", "stance", "decision")

FAMILIES: dict[str, float] = {
    # how often a new fact is of this family
    "self": 0.32,
    "stance": 0.18,
    "observation": 0.13,
    "reported": 0.10,
    "decision": 0.14,
    "relation": 0.07,
    "norm": 0.06,
    "exception": 0.02,
}


@dataclass(frozen=True)
class Draft:
    """A record-worthy message: the fact it makes, or (`changes` set) the index of the fact it changes with its new content."""

    fact: Fact
    utterance: Utterance
    changes: int | None = None


@dataclass
class World:
    """What one conversation has used up so far, so that no value means two things in it."""

    dice: Dice
    book: Phrasebook
    members: tuple[str, ...]
    topics: tuple[str, ...]
    events: tuple[str, ...]
    facts: list[Fact] = field(default_factory=list)  # as first recorded
    now: list[Fact] = field(default_factory=list)  # as they stand
    taken: set[tuple[str, ...]] = field(default_factory=set)

    def fresh(self, pool: str, values: tuple[str, ...]) -> str | None:
        """A value of the pool that this conversation has not mentioned yet; None if there is none left."""
        free = [value for value in values if (pool, value) not in self.taken]
        if not free:
            return None
        value = self.dice.pick(free)
        self.taken.add((pool, value))
        return value

    def claim(self, *key: str) -> bool:
        """Reserve a coordinate such as ("self.snack", "Ana"); False if it is taken."""
        if key in self.taken:
            return False
        self.taken.add(key)
        return True


def say(world: World, templates: tuple[str, ...], speaker: str, **slots: str) -> Utterance:
    """A message in one of the wordings; never in one that the language withholds."""
    template = world.book.drawn(world.dice.pick(templates), world.dice)
    return Utterance(speaker, template.format(**slots), template)


def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def pool_of(subject: str) -> str:
    """Kinds that draw from the same values share them: a city is not both a home and a destination in one conversation."""
    return "city" if subject in ("city", "move") else subject


def new_fact(world: World, family: str, speaker: str, others: list[str]) -> Draft | None:
    """A message by `speaker` with a new fact of the family, about one of `others` where it needs one; None if none is left."""
    maker = {
        "self": _self,
        "stance": _stance,
        "observation": _observation,
        "reported": _reported,
        "decision": _decision,
        "relation": _relation,
        "norm": _norm,
        "exception": _exception,
    }[family]
    return maker(world, speaker, others)


def _self(world: World, speaker: str, others: list[str]) -> Draft | None:
    subjects = [s for s in world.book.self_add if (f"self.{s}", speaker) not in world.taken]
    if not subjects:
        return None
    subject = world.dice.pick(subjects)
    value = world.fresh(pool_of(subject), world.book.values[subject])
    if value is None:
        return None
    world.claim(f"self.{subject}", speaker)
    content = person.SELF_CONTENT[subject].format(a=speaker, v=value)
    fact = Fact(f"self.{subject}", speaker, speaker, CORE, "fact", content, subject, (value,), (speaker,))
    return Draft(fact, say(world, world.book.self_add[subject], speaker, v=value))


def _stance(world: World, speaker: str, others: list[str]) -> Draft | None:
    topics = [t for t in world.topics if ("stance", speaker, t) not in world.taken]
    if not topics:
        return None
    topic = world.dice.pick(topics)
    world.claim("stance", speaker, topic)
    view = world.dice.weighted(lexicon.STANCES, (0.45, 0.35, 0.2))
    world.claim("view", speaker, topic, view)
    content = person.STANCE_CONTENT.format(a=speaker, v=view, t=topic)
    fact = Fact("stance", speaker, speaker, CORE, "stance", content, topic, (view,), (speaker,))
    return Draft(fact, say(world, world.book.stance_add[view], speaker, t=topic))


def _about(
    world: World,
    speaker: str,
    others: list[str],
    family: str,
    utype: str,
    contents: dict[str, str],
    wordings: Mapping[str, tuple[str, ...]],
) -> Draft | None:
    free = [(b, s) for b in others for s in wordings if (f"{family}.{s}", b) not in world.taken]
    if not free:
        return None
    owner, subject = world.dice.pick(free)
    value = world.fresh(pool_of(subject), world.book.values[subject])
    if value is None:
        return None
    world.claim(f"{family}.{subject}", owner)
    content = contents[subject].format(b=owner, v=value)
    fact = Fact(f"{family}.{subject}", owner, speaker, PROFILE, utype, content, subject, (value,), (owner,))
    return Draft(fact, say(world, wordings[subject], speaker, b=owner, v=value))


def _observation(world: World, speaker: str, others: list[str]) -> Draft | None:
    return _about(world, speaker, others, "observation", "observation", person.OBSERVATION_CONTENT, world.book.observation_add)


def _reported(world: World, speaker: str, others: list[str]) -> Draft | None:
    return _about(world, speaker, others, "reported", "fact", person.REPORT_CONTENT, world.book.report_add)


def _when_and_where(world: World, event: str) -> tuple[str, str] | None:
    day = world.fresh(f"day of {event}", world.book.days)
    spot = world.fresh("spot", world.book.spots)
    return (day, spot) if day and spot else None


def _decision(world: World, speaker: str, others: list[str]) -> Draft | None:
    free = [(k, e) for e in world.events for k in ("event", "event", "dish") if (f"decision.{k}", e) not in world.taken]
    if not free:
        return None
    kind, event = world.dice.pick(free)
    if kind == "event":
        when_and_where = _when_and_where(world, event)
        if when_and_where is None:
            return None
        values: tuple[str, ...] = when_and_where
        content = group.EVENT_CONTENT.format(e=event, d=values[0], s=values[1])
        utterance = say(world, world.book.event_add, speaker, e=event, d=values[0], s=values[1])
    else:
        dish = world.fresh("dish", world.book.values["dish"])
        if dish is None:
            return None
        values = (dish,)
        content = group.DISH_CONTENT.format(e=event, v=dish)
        utterance = say(world, world.book.dish_add, speaker, e=event, v=dish)
    world.claim(f"decision.{kind}", event)
    return Draft(Fact(f"decision.{kind}", GROUP, speaker, INTERACTION, "decision", content, event, values, ()), utterance)


def _relation(world: World, speaker: str, others: list[str]) -> Draft | None:
    free = [b for b in others if ("relation", *sorted((speaker, b))) not in world.taken]
    if not free:
        return None
    other = world.dice.pick(free)
    relation = world.fresh("relation", tuple(world.book.relations))
    if relation is None:
        return None
    world.claim("relation", *sorted((speaker, other)))
    phrase = world.book.relations[relation]
    content = group.RELATION_CONTENT.format(a=speaker, b=other, v=phrase)
    fact = Fact("relation", GROUP, speaker, INTERACTION, "relation", content, relation, (phrase,), (speaker, other))
    return Draft(fact, say(world, world.book.relation_add[relation], speaker, b=other, v=phrase))


def _norm(world: World, speaker: str, others: list[str]) -> Draft | None:
    rule = world.fresh("rule", world.book.rules)
    occasion = world.fresh("occasion", world.book.occasions)
    if rule is None or occasion is None:
        return None
    content = capital(group.NORM_CONTENT.format(r=rule, w=occasion))
    fact = Fact("norm", GROUP, speaker, INSIGHT, "decision", content, rule, (rule, occasion), ())
    return Draft(fact, say(world, world.book.norm_add, speaker, r=rule, w=occasion))


def open_rules(world: World) -> list[str]:
    """Rules of the group that nobody is excused from yet."""
    return [f.subject for f in world.facts if f.kind == "norm" and ("exception", f.subject) not in world.taken]


def _exception(world: World, speaker: str, others: list[str]) -> Draft | None:
    rules = open_rules(world)
    if not rules or not others:
        return None
    rule, other = world.dice.pick(rules), world.dice.pick(others)
    world.claim("exception", rule)
    content = group.EXCEPTION_CONTENT.format(r=rule, b=other)
    fact = Fact("exception", GROUP, speaker, INSIGHT, "observation", content, rule, (other,), (other,))
    return Draft(fact, say(world, world.book.exception_add, speaker, r=rule, b=other))


def joined(world: World, member: str) -> Draft:
    """The first message of a member who joins late."""
    content = person.JOIN_CONTENT.format(a=member)
    return Draft(
        Fact("join", member, member, CORE, "fact", content, "join", ("joined",), (member,)),
        say(world, world.book.join_add, member),
    )


def left(world: World, member: str, speaker: str) -> Draft:
    """A member leaves: their own last message, or the news told by another."""
    own = member == speaker
    layer = CORE if own else PROFILE
    content = person.LEAVE_CONTENT.format(a=member)
    templates = world.book.leave_self if own else world.book.leave_reported
    return Draft(
        Fact("leave", member, speaker, layer, "fact", content, "leave", ("left",), (member,)),
        say(world, templates, speaker, b=member),
    )


def change(world: World, index: int, speakers: list[str]) -> Draft | None:
    """A message that changes fact `index` (said by its owner, or by anyone for the group's decisions)."""
    dice, now = world.dice, world.now[index]
    if now.kind == "stance":
        views = [s for s in lexicon.STANCES if ("view", now.owner, now.subject, s) not in world.taken]
        if not views:  # nobody returns to a view they gave up
            return None
        view = dice.pick(views)
        world.claim("view", now.owner, now.subject, view)
        content = person.STANCE_CONTENT.format(a=now.owner, v=view, t=now.subject)
        utterance = say(world, world.book.stance_change[view], now.owner, t=now.subject)
        return Draft(replace(now, content=content, values=(view,)), utterance, index)
    if now.kind == "decision.event":
        values = _when_and_where(world, now.subject)
        if values is None:
            return None
        slots = {"e": now.subject, "d": values[0], "s": values[1]}
        utterance = say(world, world.book.event_change, dice.pick(speakers), **slots)
        return Draft(replace(now, content=group.EVENT_CONTENT.format(**slots), values=values), utterance, index)
    value = world.fresh(
        pool_of(now.subject) if now.family == "self" else "dish",
        world.book.values[now.subject if now.family == "self" else "dish"],
    )
    if value is None:
        return None
    if now.kind == "decision.dish":
        utterance = say(world, world.book.dish_change, dice.pick(speakers), e=now.subject, v=value, o=now.values[0])
        return Draft(replace(now, content=group.DISH_CONTENT.format(e=now.subject, v=value), values=(value,)), utterance, index)
    content = person.SELF_CONTENT[now.subject].format(a=now.owner, v=value)
    utterance = say(world, world.book.self_change[now.subject], now.owner, v=value, o=now.values[0])
    return Draft(replace(now, content=content, values=(value,)), utterance, index)


def chatter(world: World, speaker: str, others: list[str]) -> Utterance:
    """A message that is worth nothing to memory."""
    if others and world.dice.chance(0.25):
        return say(world, world.book.chat_to, speaker, b=world.dice.pick(others))
    return say(world, world.book.chat, speaker)


def trap(world: World, target: Fact, speakers: list[str]) -> tuple[Utterance, Trap] | None:
    """A message that sounds like the target fact and is none (see `wording_chat`); None if no member can say one."""
    dice, family = world.dice, target.family
    if ("trap", target.kind, target.owner, target.subject) in world.taken:
        return None
    outsiders = [s for s in speakers if s not in (target.owner, target.source)]
    if family == "self" and target.owner in speakers:
        value = world.fresh(pool_of(target.subject), world.book.values[target.subject])
        if value is None:
            return None
        return say(world, world.book.self_trap[target.subject], target.owner, v=value), Trap(
            target.kind, target.subject, target.owner, (value,)
        )
    if family in ("observation", "reported") and outsiders:
        value = world.fresh(pool_of(target.subject), world.book.values[target.subject])
        if value is None:
            return None
        utterance = say(world, world.book.other_trap[target.subject], dice.pick(outsiders), b=target.owner, v=value)
        return utterance, Trap(target.kind, target.subject, target.owner, (value,))
    if family == "stance" and target.owner in speakers:
        return say(world, world.book.stance_trap, target.owner, t=target.subject), Trap(
            target.kind, target.subject, target.owner, ()
        )
    if target.kind == "decision.event" and speakers:
        values = _when_and_where(world, target.subject)
        if values is None:
            return None
        utterance = say(world, world.book.event_trap, dice.pick(speakers), e=target.subject, d=values[0], s=values[1])
        return utterance, Trap(target.kind, target.subject, GROUP, values)
    if target.kind == "decision.dish" and speakers:
        value = world.fresh("dish", world.book.values["dish"])
        if value is None:
            return None
        return say(world, world.book.dish_trap, dice.pick(speakers), e=target.subject, v=value), Trap(
            target.kind, target.subject, GROUP, (value,)
        )
    if family == "norm" and speakers:
        occasion = world.fresh("occasion", world.book.occasions)
        if occasion is None:
            return None
        return say(world, world.book.norm_trap, dice.pick(speakers), r=target.subject, w=occasion), Trap(
            "norm", target.subject, GROUP, (occasion,)
        )
    if family == "relation" and len(speakers) > 1:
        relation = world.fresh("relation", tuple(world.book.relations))
        if relation is None:
            return None
        speaker = target.source if target.source in speakers else dice.pick(speakers)
        other = next((m for m in target.members if m != speaker and m in speakers), None)
        if other is None:
            return None
        phrase = world.book.relations[relation]
        return say(world, world.book.relation_trap, speaker, b=other, v=phrase), Trap(
            "relation", target.subject, GROUP, (phrase,)
        )
    return None
