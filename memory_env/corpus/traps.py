"""Messages that make no record: chit-chat, and traps that sound like a fact and are none."""

from __future__ import annotations

from memory_env.corpus.plan import Fact, Trap, Utterance
from memory_env.corpus.scene import Scene, pool_of, say, when_and_where
from memory_env.records import GROUP


def chatter(scene: Scene, speaker: str, others: list[str]) -> Utterance:
    """A message that is worth nothing to memory."""
    if others and scene.dice.chance(0.25):
        return say(scene, scene.book.chat_to, speaker, b=scene.dice.pick(others))
    return say(scene, scene.book.chat, speaker)


def trap(scene: Scene, target: Fact, speakers: list[str]) -> tuple[Utterance, Trap] | None:
    """A message that sounds like the target fact and is none (see `wording_chat`); None if no member can say one."""
    dice, family = scene.dice, target.family
    if ("trap", target.kind, target.owner, target.subject) in scene.taken:
        return None
    outsiders = [s for s in speakers if s not in (target.owner, target.source)]
    if family == "self" and target.owner in speakers:
        value = scene.fresh(pool_of(target.subject), scene.book.values[target.subject])
        if value is None:
            return None
        return say(scene, scene.book.self_trap[target.subject], target.owner, v=value), Trap(
            target.kind, target.subject, target.owner, (value,)
        )
    if family in ("observation", "reported") and outsiders:
        value = scene.fresh(pool_of(target.subject), scene.book.values[target.subject])
        if value is None:
            return None
        utterance = say(scene, scene.book.other_trap[target.subject], dice.pick(outsiders), b=target.owner, v=value)
        return utterance, Trap(target.kind, target.subject, target.owner, (value,))
    if family == "stance" and target.owner in speakers:
        return say(scene, scene.book.stance_trap, target.owner, t=target.subject), Trap(
            target.kind, target.subject, target.owner, ()
        )
    if target.kind == "decision.event" and speakers:
        values = when_and_where(scene, target.subject)
        if values is None:
            return None
        utterance = say(scene, scene.book.event_trap, dice.pick(speakers), e=target.subject, d=values[0], s=values[1])
        return utterance, Trap(target.kind, target.subject, GROUP, values)
    if target.kind == "decision.dish" and speakers:
        value = scene.fresh("dish", scene.book.values["dish"])
        if value is None:
            return None
        return say(scene, scene.book.dish_trap, dice.pick(speakers), e=target.subject, v=value), Trap(
            target.kind, target.subject, GROUP, (value,)
        )
    if family == "norm" and speakers:
        occasion = scene.fresh("occasion", scene.book.occasions)
        if occasion is None:
            return None
        return say(scene, scene.book.norm_trap, dice.pick(speakers), r=target.subject, w=occasion), Trap(
            "norm", target.subject, GROUP, (occasion,)
        )
    if family == "relation" and len(speakers) > 1:
        relation = scene.fresh("relation", tuple(scene.book.relations))
        if relation is None:
            return None
        speaker = target.source if target.source in speakers else dice.pick(speakers)
        other = next((m for m in target.members if m != speaker and m in speakers), None)
        if other is None:
            return None
        phrase = scene.book.relations[relation]
        return say(scene, scene.book.relation_trap, speaker, b=other, v=phrase), Trap(
            "relation", target.subject, GROUP, (phrase,)
        )
    return None
