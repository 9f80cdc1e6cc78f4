"""The timeline of one conversation: who is there when, what is said in which segment."""

from __future__ import annotations

from memory_env.corpus.dice import Dice
from memory_env.corpus.drafts import CHANGEABLE, FAMILIES, Draft, change, joined, left, new_fact, open_rules
from memory_env.corpus.phrasebook import Phrasebook
from memory_env.corpus.plan import Event, Plan, Position, Trap, Utterance
from memory_env.corpus.scene import Scene
from memory_env.corpus.shapes import Shape
from memory_env.corpus.traps import chatter, trap

MAX_CHANGES = 3
EXCEPTION_RATE = 0.2  # of the new facts once there is a norm without one


def make_plan(seed: int, shape: Shape, network_id: str, book: Phrasebook) -> Plan:
    """The conversation of this seed, shape and language: same arguments, same plan, on every machine."""
    return _Timeline(seed, shape, book).plan(network_id)


class _Timeline:
    def __init__(self, seed: int, shape: Shape, book: Phrasebook) -> None:
        self.dice, self.shape = Dice(seed), shape
        dice = self.dice
        members = tuple(dice.sample(book.names, dice.between(*shape.members)))
        self.segments = dice.between(*shape.segments)
        many = self.segments > 4
        self.scene = Scene(
            dice,
            book,
            members,
            tuple(dice.sample(book.topics, 3 if many else 2)),
            tuple(dice.sample(book.events, 3 if many else 2)),
        )
        self.quiet = members[0] if len(members) > 3 else None
        self.late = members[1] if len(members) > 2 and dice.chance(shape.late_rate) else None
        self.leaver = members[2] if len(members) > 2 and dice.chance(shape.leave_rate) else None
        self.arrival = dice.between(1, max(1, self.segments // 2)) if self.late else 0
        self.departure = dice.between(max(1, self.segments // 2), self.segments - 1) if self.leaver else self.segments
        self.heard: set[str] = set()
        self.said: set[str] = set()
        self.traps: list[Trap] = []
        self.changes: dict[int, int] = {}

    def plan(self, network_id: str) -> Plan:
        positions = tuple(self._position(t) for t in range(self.segments))
        return Plan(network_id, self.scene.book, self.scene.members, tuple(self.scene.facts), positions, tuple(self.traps))

    def _present(self, t: int) -> list[str]:
        return [
            m
            for m in self.scene.members
            if not (m == self.late and t < self.arrival) and not (m == self.leaver and t >= self.departure)
        ]

    def _speaker(self, present: list[str]) -> str:
        return self.dice.weighted(present, [0.3 if m == self.quiet else 1.0 for m in present])

    def _position(self, t: int) -> Position:
        dice, shape = self.dice, self.shape
        present = self._present(t)
        first = joined(self.scene, self.late) if self.late and t == self.arrival else None
        last = self._departure(t, present)
        extra = (first is not None) + (last is not None)
        count = dice.between(*shape.messages)
        wanted = dice.between(*shape.memorable)
        if t > 0 and dice.chance(shape.noop_rate):
            wanted = 0
        wanted = max(0, min(wanted, count - extra))
        drafts = self._drafts(wanted, present, spare=count - extra - wanted)
        speakers = {d.utterance.speaker for d in drafts} | ({self.late} if first else set())
        # a member can own a record only after having been heard, this segment included
        owed = list(dict.fromkeys(m for d in drafts for m in d.fact.members if m not in self.heard | speakers))
        fillers = self._fillers(max(0, count - extra - len(drafts)), present, owed)
        slots: list[Draft | Utterance] = dice.shuffled([True] * len(drafts) + [False] * len(fillers))  # type: ignore[arg-type]
        draft_queue, filler_queue = iter(drafts), iter(fillers)
        body: list[Draft | Utterance] = [next(draft_queue) if is_draft else next(filler_queue) for is_draft in slots]
        body = ([first] if first else []) + body + ([last] if last else [])
        return self._settle(body)

    def _departure(self, t: int, present: list[str]) -> Draft | None:
        if t != self.departure or not self.leaver:
            return None
        if self.leaver not in self.heard:  # a leaver nobody has heard has no memory to close: stays
            self.leaver = None
            return None
        return left(self.scene, self.leaver, self.leaver if self.dice.chance(0.4) else self._speaker(present))

    def _drafts(self, wanted: int, present: list[str], spare: int) -> list[Draft]:
        drafts: list[Draft] = []
        touched: set[int] = set()
        owed: set[str] = set()
        for _ in range(wanted * 12):
            if len(drafts) == wanted:
                break
            if not self.dice.chance(self.shape.update_rate):
                draft = self._addition(present, drafts, owed, spare)
            elif any(fact.family in CHANGEABLE for fact in self.scene.now):
                draft = self._change(present, touched)
            else:  # nothing can change yet: state something that can
                draft = self._addition(present, drafts, owed, spare, CHANGEABLE)
            if draft is None:
                continue
            if draft.changes is not None:
                touched.add(draft.changes)
            drafts.append(draft)
        return drafts

    def _change(self, present: list[str], touched: set[int]) -> Draft | None:
        candidates = [
            i
            for i, fact in enumerate(self.scene.now)
            if fact.family in CHANGEABLE
            and i not in touched
            and self.changes.get(i, 0) < MAX_CHANGES
            and (fact.is_group or fact.owner in present)
        ]
        if not candidates:
            return None
        weights = [1.0 / (1 + self.changes.get(i, 0)) for i in candidates]
        return change(self.scene, self.dice.weighted(candidates, weights), present)

    def _addition(
        self, present: list[str], drafts: list[Draft], owed: set[str], spare: int, families: tuple[str, ...] = tuple(FAMILIES)
    ) -> Draft | None:
        speaker = self._speaker(present)
        speaking = {d.utterance.speaker for d in drafts} | {speaker}
        known = [m for m in present if m != speaker and (m in self.heard or m in speaking or m in owed or len(owed) < spare)]
        family = self.dice.weighted(families, [FAMILIES[f] for f in families])
        if family not in CHANGEABLE and self.dice.chance(EXCEPTION_RATE) and open_rules(self.scene):
            family = "exception"
        draft = new_fact(self.scene, family, speaker, known)
        if draft is not None:
            owed.update(m for m in draft.fact.members if m not in self.heard and m not in speaking)
        return draft

    def _fillers(self, count: int, present: list[str], owed: list[str]) -> list[Utterance]:
        out: list[Utterance] = []
        for i in range(count):
            speaker = owed[i] if i < len(owed) else self._speaker(present)
            found = None
            if i >= len(owed) and self.scene.now and self.dice.chance(self.shape.trap_rate):
                found = trap(self.scene, self.dice.pick(self.scene.now), present)
            if found is not None and found[0].content not in self.said:
                self.traps.append(found[1])
                self.scene.claim("trap", found[1].kind, found[1].member, found[1].subject)
                utterance = found[0]
            else:
                utterance = self._small_talk(speaker, [m for m in present if m != speaker])
            self.said.add(utterance.content)
            out.append(utterance)
        return self.dice.shuffled(out)

    def _small_talk(self, speaker: str, others: list[str]) -> Utterance:
        utterance = chatter(self.scene, speaker, others)
        for _ in range(20):
            if utterance.content not in self.said:
                break
            utterance = chatter(self.scene, speaker, others)
        return utterance

    def _settle(self, body: list[Draft | Utterance]) -> Position:
        messages: list[Utterance] = []
        events: list[Event] = []
        for i, item in enumerate(body):
            utterance = item.utterance if isinstance(item, Draft) else item
            messages.append(utterance)
            self.heard.add(utterance.speaker)
            self.said.add(utterance.content)
            if not isinstance(item, Draft):
                continue
            if item.changes is None:
                self.scene.facts.append(item.fact)
                self.scene.now.append(item.fact)
                index, operation = len(self.scene.facts) - 1, "ADD"
            else:
                index, operation = item.changes, "UPDATE"
                self.scene.now[index] = item.fact
                self.changes[index] = self.changes.get(index, 0) + 1
            events.append(Event(i, operation, index, item.fact.content, item.fact.values, utterance.speaker))
        return Position(tuple(messages), tuple(events))
