"""Questions in nine categories (paper F.2) about a planned conversation, each with the rubric that decides an answer.

Q1 one person, Q2 group decisions, Q3 stances per person, Q4 attribution, Q5 what one says of another, Q6 norms and exceptions,
Q7 relations of two, Q8 change over time, Q9 outliers, joiners and departed members.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory_env.corpus import lexicon
from memory_env.corpus import wording_ask as ask
from memory_env.corpus.dice import Dice
from memory_env.corpus.facts_in_force import InForce
from memory_env.corpus.plan import Fact, Plan
from memory_env.records import GROUP

CATEGORIES: dict[str, float] = {"Q1": 3.0, "Q2": 2.0, "Q3": 2.5, "Q4": 2.0, "Q5": 1.5, "Q6": 2.0, "Q7": 1.5, "Q8": 2.0, "Q9": 2.0}
CHOICE_RATE = 0.3  # share of the questions with one short answer that offer options


@dataclass(frozen=True)
class PlannedQuestion:
    """One question before it gets an id.

    `items` and `wrong` are (who, text) pairs: an answer is right iff it states every item for that person and no wrong one.
    Text "" means that the person is the answer, "nothing" that nothing is known.
    `facts` are the indices of the facts it rests on, `choices` the texts to choose from (the right one first).
    """

    category: str
    difficulty: str
    question: str
    answer: str
    items: tuple[tuple[str, str], ...]
    wrong: tuple[tuple[str, str], ...] = ()
    facts: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()
    temporal: bool = False


def ask_about(plan: Plan, dice: Dice) -> list[PlannedQuestion]:
    """Every question the plan can answer, in plan order, each in one wording."""
    world = InForce(plan)
    out: list[PlannedQuestion] = []
    for index, fact in enumerate(world.facts):
        asker = _ASKERS.get(fact.family)
        if asker:
            out.extend(asker(world, index, fact, dice))
        out.extend(_changes(world, index, fact))
    out.extend(_stances(world, dice))
    out.extend(_beliefs(world, dice))
    if not plan.facts:
        out.append(PlannedQuestion("Q2", "easy", dice.pick(ask.NOTHING), "Nothing is known.", ((GROUP, "nothing"),)))
    return [_without_true_wrongs(world, question) for question in _once(out)]


def choose(candidates: list[PlannedQuestion], count: int, dice: Dice) -> list[PlannedQuestion]:
    """`count` of the questions, spread over the categories by `CATEGORIES`; fewer if there are not as many."""
    queues = {c: dice.shuffled([q for q in candidates if q.category == c]) for c in CATEGORIES}
    taken = {c: dice.between(1, 9) / 10 for c in CATEGORIES}  # so that short lists do not always begin with the same category
    chosen: list[PlannedQuestion] = []
    while len(chosen) < count and any(queues.values()):
        category = min((c for c in CATEGORIES if queues[c]), key=lambda c: (taken[c] / CATEGORIES[c], c))
        chosen.append(queues[category].pop())
        taken[category] += 1
    order = {id(q): i for i, q in enumerate(candidates)}
    chosen.sort(key=lambda q: (q.category, order[id(q)]))
    return [_with_choices(q, dice) for q in chosen]


def _once(questions: list[PlannedQuestion]) -> list[PlannedQuestion]:
    return list({q.question: q for q in reversed(questions)}.values())[::-1]


def _without_true_wrongs(world: InForce, question: PlannedQuestion) -> PlannedQuestion:
    """The question without wrong items that happen to be true of that person through another fact."""
    own = question.facts if question.temporal else ()  # "before" may exclude what holds now
    wrong = [
        pair for pair in question.wrong if pair not in question.items and not (pair[1] and world.holds(*pair, apart_from=own))
    ]
    return replace(question, wrong=tuple(dict.fromkeys(wrong)))


def _with_choices(question: PlannedQuestion, dice: Dice) -> PlannedQuestion:
    if len(question.choices) < 4 or not dice.chance(CHOICE_RATE):
        return replace(question, choices=())
    return replace(question, choices=question.choices[:4])


def _near(values: tuple[str, ...], right: str, first: list[str], dice: Dice) -> tuple[str, ...]:
    """The right value and three others, the tempting ones first."""
    others = [v for v in dict.fromkeys(first) if v != right]
    others += [v for v in dice.shuffled(values) if v != right and v not in others]
    return (right, *others[:3])


def _value(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    departed = world.left(fact.owner)
    name = ask.DEPARTED.format(a=fact.owner) if departed else fact.owner
    question = dice.pick(ask.VALUE[fact.kind]).format(a=name)
    value = fact.values[0]
    tempting = world.outdated(index) + world.trapped(fact.kind, fact.owner)
    wrong = tuple((fact.owner, text) for text in tempting)
    category = "Q9" if departed else "Q1"
    difficulty = "hard" if departed else "medium" if tempting else "easy"
    choices = _near(world.plan.book.values[fact.subject], value, tempting, dice)
    return [PlannedQuestion(category, difficulty, question, f"{fact.content}.", ((fact.owner, value),), wrong, (index,), choices)]


def _self(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    """The value; asked as a change (Q8) if there was one."""
    return [] if world.outdated(index) else _value(world, index, fact, dice)


def _told(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    """Observations and reported speech: the value (Q1) and who said it (Q4)."""
    wordings = ask.SOURCE_SEEN if fact.family == "observation" else ask.SOURCE_TOLD
    return _value(world, index, fact, dice) + [_source(world, index, fact, dice.pick(wordings))]


def _source(world: InForce, index: int, fact: Fact, wording: str) -> PlannedQuestion:
    what = fact.content if not fact.is_group else fact.content[0].lower() + fact.content[1:]
    others = [m for m in world.plan.members if m not in (fact.source, *fact.members)]
    answer = f"{fact.source} said that {what}."
    return PlannedQuestion(
        "Q4", "medium", wording.format(what=what), answer, ((fact.source, ""),), _not(others), (index,), (fact.source, *others)
    )


def _not(members: list[str] | tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Members who are not the answer."""
    return tuple((member, "") for member in members)


def _decision(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    slots = {"e": fact.subject}
    tempting = world.outdated(index) + world.trapped(fact.kind, GROUP)
    wrong = tuple((GROUP, text) for text in tempting)
    out: list[PlannedQuestion] = []
    if fact.kind == "decision.event":
        day, spot = fact.values
        both = ((GROUP, day), (GROUP, spot))
        out.append(
            PlannedQuestion("Q2", "medium", dice.pick(ask.EVENT).format(**slots), f"{fact.content}.", both, wrong, (index,))
        )
        if dice.chance(0.5):
            question, value, values = dice.pick(ask.EVENT_DAY), day, world.plan.book.days
        else:
            question, value, values = dice.pick(ask.EVENT_SPOT), spot, world.plan.book.spots
        near = _near(values, value, [t for t in tempting if t in values], dice)
        out.append(
            PlannedQuestion("Q2", "easy", question.format(**slots), f"{fact.content}.", ((GROUP, value),), wrong, (index,), near)
        )
    else:
        near = _near(world.plan.book.values["dish"], fact.values[0], tempting, dice)
        question = dice.pick(ask.DISH).format(**slots)
        out.append(PlannedQuestion("Q2", "easy", question, f"{fact.content}.", ((GROUP, fact.values[0]),), wrong, (index,), near))
    if not world.outdated(index):
        out.append(_source(world, index, fact, dice.pick(ask.SOURCE_GROUP)))
    return out


def _relation(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    a, b = fact.members
    phrase = fact.values[0]
    tempting = world.trapped("relation", GROUP)
    wrong = tuple((GROUP, text) for text in tempting)
    phrases = tuple(world.plan.book.relations.values())
    question = dice.pick(ask.RELATION).format(a=a, b=b)
    first = PlannedQuestion(
        "Q7", "medium", question, f"{fact.content}.", ((GROUP, phrase),), wrong, (index,), _near(phrases, phrase, tempting, dice)
    )
    outsiders = [m for m in world.plan.members if m not in fact.members]
    question = dice.pick(ask.RELATION_WHO).format(v=phrase)
    return [first, PlannedQuestion("Q7", "medium", question, f"{fact.content}.", ((a, ""), (b, "")), _not(outsiders), (index,))]


def _norm(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    rule, occasion = fact.values
    wrong = tuple((GROUP, text) for text in world.trapped("norm", GROUP))
    which = PlannedQuestion(
        "Q6", "easy", dice.pick(ask.NORM_AT).format(w=occasion), f"{fact.content}.", ((GROUP, rule),), (), (index,)
    )
    near = _near(world.plan.book.occasions, occasion, world.trapped("norm", GROUP), dice)
    when = PlannedQuestion(
        "Q6", "medium", dice.pick(ask.NORM_WHEN).format(r=rule), f"{fact.content}.", ((GROUP, occasion),), wrong, (index,), near
    )
    return [which, when]


def _exception(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    others = [m for m in world.plan.members if m not in fact.members]
    question = dice.pick(ask.EXCEPTION).format(r=fact.subject)
    return [
        PlannedQuestion(
            "Q6", "hard", question, f"{fact.content}.", ((fact.values[0], ""),), _not(others), (index,), (fact.values[0], *others)
        )
    ]


def _presence(world: InForce, index: int, fact: Fact, dice: Dice) -> list[PlannedQuestion]:
    wordings = ask.LEFT if fact.kind == "leave" else ask.JOINED
    others = [m for m in world.plan.members if m != fact.owner]
    return [PlannedQuestion("Q9", "medium", dice.pick(wordings), f"{fact.content}.", ((fact.owner, ""),), _not(others), (index,))]


def _changes(world: InForce, index: int, fact: Fact) -> list[PlannedQuestion]:
    events = world.plan.history(index)
    if len(events) < 2:
        return []
    slots = {"a": fact.owner, "t": fact.subject, "e": fact.subject}
    who = fact.owner

    def texts(values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        return ((who, f"{values[0]} the {fact.subject} plan"),) if fact.kind == "stance" else tuple((who, v) for v in values)

    def minus(these: tuple[tuple[str, str], ...], those: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple(t for t in dict.fromkeys(these) if t not in those)

    current, previous = texts(events[-1].values), texts(events[-2].values)
    older = tuple(item for event in events[:-2] for item in texts(event.values))
    trapped = tuple((who, t) for t in world.trapped(fact.kind, who))
    was, now = events[-2].content, events[-1].content
    facts = (index,)
    before_wrong = minus(current + older + trapped, previous)
    now_wrong = minus(previous + older + trapped, current)
    how = "First: " + ". Then: ".join(event.content for event in events) + "."
    whole = tuple(item for event in events for item in texts(event.values))
    return [
        PlannedQuestion(
            "Q8", "hard", ask.BEFORE[fact.kind].format(**slots), f"Before: {was}.", previous, before_wrong, facts, temporal=True
        ),
        PlannedQuestion(
            "Q8", "medium", ask.NOW[fact.kind].format(**slots), f"Now: {now}.", current, now_wrong, facts, temporal=True
        ),
        PlannedQuestion("Q8", "hard", ask.CHANGED[fact.kind].format(**slots), how, whole, trapped, facts, temporal=True),
    ]


def _stances(world: InForce, dice: Dice) -> list[PlannedQuestion]:
    out: list[PlannedQuestion] = []
    for topic in dict.fromkeys(f.subject for f in world.facts if f.kind == "stance"):
        held = [(i, f) for i, f in enumerate(world.facts) if f.kind == "stance" and f.subject == topic]

        def phrase(view: str, topic: str = topic) -> str:
            return f"{view} the {topic} plan"

        def false_of(fact: Fact) -> tuple[tuple[str, str], ...]:
            return tuple((fact.owner, phrase(v)) for v in lexicon.STANCES if v != fact.values[0])

        for i, fact in held:
            if world.outdated(i):  # asked as a change
                continue
            question = dice.pick(ask.STANCE_ONE).format(a=fact.owner, t=topic)
            choices = tuple(phrase(v) for v in (fact.values[0], *[s for s in lexicon.STANCES if s != fact.values[0]]))
            choices += (f"never spoke of the {topic} plan",)
            item = ((fact.owner, phrase(fact.values[0])),)
            out.append(PlannedQuestion("Q3", "easy", question, f"{fact.content}.", item, false_of(fact), (i,), choices))
        if len(held) < 2:
            continue
        items = tuple((f.owner, phrase(f.values[0])) for _, f in held)
        answer = "; ".join(f.content for _, f in held) + "."
        wrong = tuple(pair for _, f in held for pair in false_of(f))
        indices = tuple(i for i, _ in held)
        out.append(PlannedQuestion("Q3", "hard", dice.pick(ask.STANCE_ALL).format(t=topic), answer, items, wrong, indices))
        for view in lexicon.STANCES:
            alone = [(i, f) for i, f in held if f.values[0] == view]
            if len(alone) == 1 and len(held) > 2:
                i, fact = alone[0]
                wrong = _not([f.owner for _, f in held if f.owner != fact.owner])
                question = dice.pick(ask.ONLY).format(v=view, t=topic)
                out.append(PlannedQuestion("Q9", "hard", question, f"Only {fact.content}.", ((fact.owner, ""),), wrong, indices))
    return out


def _beliefs(world: InForce, dice: Dice) -> list[PlannedQuestion]:
    out: list[PlannedQuestion] = []
    told = [(i, f) for i, f in enumerate(world.facts) if f.family in ("observation", "reported")]
    for source, owner in dict.fromkeys((f.source, f.owner) for _, f in told):
        said = [(i, f) for i, f in told if (f.source, f.owner) == (source, owner)]
        if len(said) > 1:  # a rubric's items are ordered, and what two remarks come first is open
            continue
        items = tuple((owner, f.values[0]) for _, f in said)
        wrong = tuple((owner, f.values[0]) for _, f in told if f.owner == owner and f.source != source)
        answer = f"{source} said: " + "; ".join(f.content for _, f in said) + "."
        question = dice.pick(ask.BELIEF).format(a=source, b=owner)
        out.append(
            PlannedQuestion("Q5", "hard" if wrong else "medium", question, answer, items, wrong, tuple(i for i, _ in said))
        )
    return out


_ASKERS = {
    "self": _self,
    "observation": _told,
    "reported": _told,
    "decision": _decision,
    "relation": _relation,
    "norm": _norm,
    "exception": _exception,
    "join": _presence,
    "leave": _presence,
}
