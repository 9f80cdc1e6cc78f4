"""Messages worth a record: a new fact, a change of a fact, a member who joins or leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memory_env.corpus import lexicon
from memory_env.corpus import wording_group as group
from memory_env.corpus import wording_person as person
from memory_env.corpus.plan import Fact, Utterance
from memory_env.corpus.scene import Scene, capital, pool_of, say, when_and_where
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


def new_fact(scene: Scene, family: str, speaker: str, others: list[str]) -> Draft | None:
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
    return maker(scene, speaker, others)


def _self(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    subjects = [s for s in scene.book.self_add if (f"self.{s}", speaker) not in scene.taken]
    if not subjects:
        return None
    subject = scene.dice.pick(subjects)
    value = scene.fresh(pool_of(subject), scene.book.values[subject])
    if value is None:
        return None
    scene.claim(f"self.{subject}", speaker)
    content = person.SELF_CONTENT[subject].format(a=speaker, v=value)
    fact = Fact(f"self.{subject}", speaker, speaker, CORE, "fact", content, subject, (value,), (speaker,))
    return Draft(fact, say(scene, scene.book.self_add[subject], speaker, v=value))


def _stance(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    topics = [t for t in scene.topics if ("stance", speaker, t) not in scene.taken]
    if not topics:
        return None
    topic = scene.dice.pick(topics)
    scene.claim("stance", speaker, topic)
    view = scene.dice.weighted(lexicon.STANCES, (0.45, 0.35, 0.2))
    scene.claim("view", speaker, topic, view)
    content = person.STANCE_CONTENT.format(a=speaker, v=view, t=topic)
    fact = Fact("stance", speaker, speaker, CORE, "stance", content, topic, (view,), (speaker,))
    return Draft(fact, say(scene, scene.book.stance_add[view], speaker, t=topic))


def _about(
    scene: Scene,
    speaker: str,
    others: list[str],
    family: str,
    utype: str,
    contents: dict[str, str],
    wordings: Mapping[str, tuple[str, ...]],
) -> Draft | None:
    free = [(b, s) for b in others for s in wordings if (f"{family}.{s}", b) not in scene.taken]
    if not free:
        return None
    owner, subject = scene.dice.pick(free)
    value = scene.fresh(pool_of(subject), scene.book.values[subject])
    if value is None:
        return None
    scene.claim(f"{family}.{subject}", owner)
    content = contents[subject].format(b=owner, v=value)
    fact = Fact(f"{family}.{subject}", owner, speaker, PROFILE, utype, content, subject, (value,), (owner,))
    return Draft(fact, say(scene, wordings[subject], speaker, b=owner, v=value))


def _observation(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    return _about(scene, speaker, others, "observation", "observation", person.OBSERVATION_CONTENT, scene.book.observation_add)


def _reported(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    return _about(scene, speaker, others, "reported", "fact", person.REPORT_CONTENT, scene.book.report_add)


def _decision(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    free = [(k, e) for e in scene.events for k in ("event", "event", "dish") if (f"decision.{k}", e) not in scene.taken]
    if not free:
        return None
    kind, event = scene.dice.pick(free)
    if kind == "event":
        chosen = when_and_where(scene, event)
        if chosen is None:
            return None
        values: tuple[str, ...] = chosen
        content = group.EVENT_CONTENT.format(e=event, d=values[0], s=values[1])
        utterance = say(scene, scene.book.event_add, speaker, e=event, d=values[0], s=values[1])
    else:
        dish = scene.fresh("dish", scene.book.values["dish"])
        if dish is None:
            return None
        values = (dish,)
        content = group.DISH_CONTENT.format(e=event, v=dish)
        utterance = say(scene, scene.book.dish_add, speaker, e=event, v=dish)
    scene.claim(f"decision.{kind}", event)
    return Draft(Fact(f"decision.{kind}", GROUP, speaker, INTERACTION, "decision", content, event, values, ()), utterance)


def _relation(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    free = [b for b in others if ("relation", *sorted((speaker, b))) not in scene.taken]
    if not free:
        return None
    other = scene.dice.pick(free)
    relation = scene.fresh("relation", tuple(scene.book.relations))
    if relation is None:
        return None
    scene.claim("relation", *sorted((speaker, other)))
    phrase = scene.book.relations[relation]
    content = group.RELATION_CONTENT.format(a=speaker, b=other, v=phrase)
    fact = Fact("relation", GROUP, speaker, INTERACTION, "relation", content, relation, (phrase,), (speaker, other))
    return Draft(fact, say(scene, scene.book.relation_add[relation], speaker, b=other, v=phrase))


def _norm(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    rule = scene.fresh("rule", scene.book.rules)
    occasion = scene.fresh("occasion", scene.book.occasions)
    if rule is None or occasion is None:
        return None
    content = capital(group.NORM_CONTENT.format(r=rule, w=occasion))
    fact = Fact("norm", GROUP, speaker, INSIGHT, "decision", content, rule, (rule, occasion), ())
    return Draft(fact, say(scene, scene.book.norm_add, speaker, r=rule, w=occasion))


def open_rules(scene: Scene) -> list[str]:
    """Rules of the group that nobody is excused from yet."""
    return [f.subject for f in scene.facts if f.kind == "norm" and ("exception", f.subject) not in scene.taken]


def _exception(scene: Scene, speaker: str, others: list[str]) -> Draft | None:
    rules = open_rules(scene)
    if not rules or not others:
        return None
    rule, other = scene.dice.pick(rules), scene.dice.pick(others)
    scene.claim("exception", rule)
    content = group.EXCEPTION_CONTENT.format(r=rule, b=other)
    fact = Fact("exception", GROUP, speaker, INSIGHT, "observation", content, rule, (other,), (other,))
    return Draft(fact, say(scene, scene.book.exception_add, speaker, r=rule, b=other))


def joined(scene: Scene, member: str) -> Draft:
    """The first message of a member who joins late."""
    content = person.JOIN_CONTENT.format(a=member)
    return Draft(
        Fact("join", member, member, CORE, "fact", content, "join", ("joined",), (member,)),
        say(scene, scene.book.join_add, member),
    )


def left(scene: Scene, member: str, speaker: str) -> Draft:
    """A member leaves: their own last message, or the news told by another."""
    own = member == speaker
    layer = CORE if own else PROFILE
    content = person.LEAVE_CONTENT.format(a=member)
    templates = scene.book.leave_self if own else scene.book.leave_reported
    return Draft(
        Fact("leave", member, speaker, layer, "fact", content, "leave", ("left",), (member,)),
        say(scene, templates, speaker, b=member),
    )


def change(scene: Scene, index: int, speakers: list[str]) -> Draft | None:
    """A message that changes fact `index` (said by its owner, or by anyone for the group's decisions)."""
    dice, now = scene.dice, scene.now[index]
    if now.kind == "stance":
        views = [s for s in lexicon.STANCES if ("view", now.owner, now.subject, s) not in scene.taken]
        if not views:  # nobody returns to a view they gave up
            return None
        view = dice.pick(views)
        scene.claim("view", now.owner, now.subject, view)
        content = person.STANCE_CONTENT.format(a=now.owner, v=view, t=now.subject)
        utterance = say(scene, scene.book.stance_change[view], now.owner, t=now.subject)
        return Draft(replace(now, content=content, values=(view,)), utterance, index)
    if now.kind == "decision.event":
        values = when_and_where(scene, now.subject)
        if values is None:
            return None
        slots = {"e": now.subject, "d": values[0], "s": values[1]}
        utterance = say(scene, scene.book.event_change, dice.pick(speakers), **slots)
        return Draft(replace(now, content=group.EVENT_CONTENT.format(**slots), values=values), utterance, index)
    value = scene.fresh(
        pool_of(now.subject) if now.family == "self" else "dish",
        scene.book.values[now.subject if now.family == "self" else "dish"],
    )
    if value is None:
        return None
    if now.kind == "decision.dish":
        utterance = say(scene, scene.book.dish_change, dice.pick(speakers), e=now.subject, v=value, o=now.values[0])
        return Draft(replace(now, content=group.DISH_CONTENT.format(e=now.subject, v=value), values=(value,)), utterance, index)
    content = person.SELF_CONTENT[now.subject].format(a=now.owner, v=value)
    utterance = say(scene, scene.book.self_change[now.subject], now.owner, v=value, o=now.values[0])
    return Draft(replace(now, content=content, values=(value,)), utterance, index)
