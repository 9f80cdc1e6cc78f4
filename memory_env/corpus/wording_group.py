"""How the group's own matters are said: decisions, relations, norms and their exceptions.

Slots: `{e}` the event, `{d}` the day, `{s}` the spot, `{v}` the dish, `{a}` the speaker, `{b}` and `{c}` other members,
`{r}` the rule, `{w}` the occasion.
"""

from __future__ import annotations

EVENT_CONTENT = "The {e} takes place on {d} at the {s}"
EVENT_ADD: tuple[str, ...] = (
    "ok all agreed, {e} {d}, {s}, see you there",
    "it is settled, we meet {d} at the {s} for the {e}",
    "I booked the {s} for our {e}, {d} it is",
    "votes are in, our {e} goes to the {s} this {d}",
    "mark it down, {d}, {s}, our {e}",
    "five yes and no one against, {e} {d} by the {s}",
    "we decided, the {e} is on {d} at the {s}",
)
EVENT_CHANGE: tuple[str, ...] = (
    "new plan, our {e} moves to {d} at the {s}",
    "we had to shift the {e}, now {d} by the {s}",
    "forget the old date, {e} {d}, {s}, all agreed",
    "the {e} got pushed, we meet {d} at the {s} instead",
    "rain again, so we put the {e} on {d}, {s}",
)
DISH_CONTENT = "The dish for the {e} is {v}"
DISH_ADD: tuple[str, ...] = (
    "so we all cook {v} for the {e}, deal",
    "settled, everyone gets {v} at our {e}",
    "most hands went up for {v}, so that feeds our {e}",
    "I bought ten kilos for {v}, our {e} is saved",
    "we agreed on {v} to fill us at the {e}",
    "we decided that the dish for the {e} is {v}",
)
DISH_CHANGE: tuple[str, ...] = (
    "no {o} after all, we cook {v} for the {e}",
    "the {e} gets {v} instead of {o}, we agreed",
    "we swapped the {o}, our {e} eats {v} now",
)

RELATION_ADD: dict[str, tuple[str, ...]] = {
    # the speaker and {b}
    "cousins": (
        "my mum and the mum of {b} are sisters",
        "{b} and I have the same grandparents",
        "funny, {b} is the child of my uncle",
        "did you know {b} and I are cousins",
    ),
    "neighbours": (
        "{b} lives one door from me",
        "I can hear {b} sing through my wall",
        "{b} and I share a garden fence",
        "{b} and I are neighbours by the way",
    ),
    "flat": (
        "{b} and I split the rent of one kitchen",
        "{b} forgot to clean our bathroom again",
        "my room is next to the room of {b}",
        "{b} and I share a flat",
    ),
    "school": (
        "{b} and I sat in the same class at ten",
        "{b} copied my homework back in third grade",
        "our old teacher asked about {b} and me",
        "{b} and I went to school together",
    ),
    "carpool": (
        "{b} drives me to the office each morning",
        "{b} and I take one car in the mornings",
        "my seat is next to {b} on the way to the office",
        "{b} and I carpool to work",
    ),
    "band": (
        "{b} and I are on stage together this month",
        "{b} sings and I do the rest in our trio",
        "{b} and I recorded our first album",
        "{b} and I play in a band",
    ),
    "twins": (
        "{b} was born ten minutes before me",
        "{b} and I have one birthday and one face",
        "people mix up {b} and me since we were babies",
        "{b} and I are twins",
    ),
    "stall": (
        "{b} and I sell jam on the square",
        "{b} counts the coins and I do the selling",
        "come buy our honey, {b} and I need the cash",
        "{b} and I run a market stall",
    ),
}
RELATION_CONTENT = "{a} and {b} {v}"

NORM_CONTENT = "{r} {w}"  # written with a capital: "No phones during dinner"
NORM_ADD: tuple[str, ...] = (
    "can we all stick to this, {r} {w}",
    "house law from now on, {r} {w}",
    "one thing we never break, {r} {w}",
    "as always with us, {r} {w}",
    "let me remind you all, {r} {w}",
    "we shook hands on it, {r} {w}",
    "our rule is {r} {w}",
)
EXCEPTION_CONTENT = "The {r} rule does not apply to {b}"
EXCEPTION_OTHER: tuple[str, ...] = (
    "{r}, but {b} gets a free pass",
    "{r} for all of us, only {b} is excused",
    "{b} has a good reason, so forget {r} there",
    "we let {b} off the hook with {r}",
    "{r} counts for everyone but {b}",
    "the {r} rule is not for {b}",
)
