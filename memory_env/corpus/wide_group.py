"""What the wide language says about the group, its chit-chat and its traps. `[a|b]` is a choice (see `phrasebook.py`)."""

from __future__ import annotations

from collections.abc import Iterable

_WHO = "my [uncle|cousin|boss|neighbour|teacher|landlord|grandpa|dentist|colleague|niece]"
_NEWS = "[a study|the news|a magazine|a book|the paper] says"

EVENT_ADD: tuple[str, ...] = (
    "[agreed|decided|fixed|booked], the {e} is [on|this] {d} [at|by] the {s}",
    "we [gather|come|all go] [at|by] the {s} on {d} for the {e}",
    "{e} [plans|time], {d}, {s}[, all said yes|, everyone agreed|]",
    "[everybody|the group|we all] [chose|picked|wants] the {s} on {d} for [the|our] {e}",
    "on {d} [we do|we have|comes] [the|our] {e} [at|by] the {s}[, agreed|]",
    "[it is fixed|it is booked|all said yes], [the |our |]{e} [at|by] the {s} on {d}",
    "this {d} we [gather|go|come] [at|by|to] the {s}, {e} [time|for all]",
)
EVENT_CHANGE: tuple[str, ...] = (
    "[change of plan|update|sorry all|sorry], the {e} is [now|instead] on {d} [at|by] the {s}",
    "the {e} [shifts|goes|changes] to {d}, [at|by] the {s}",
    "not the old [day|date|place], the {e} [is|comes] on {d} [at|by] the {s}[ now|]",
    "we [moved|shifted|changed] [the|our] {e}, [now |it is ][at|by] the {s} on {d}",
    "[the |our |]{e} update, [now |][it is |]{d} at the {s}",
)
DISH_ADD: tuple[str, ...] = (
    "we [chose|picked|voted for|all want] {v} for the {e}",
    "[the group|everybody|we all] [wants|eats|gets] {v} at [the|our] {e}",
    "[it is decided|it is fixed|we voted], {v} [is the food|goes on the menu] [for|at] the {e}",
    "the [menu|food|meal] [for|of|at] the {e} is {v}",
    "[the |our |]{e} guests [get|eat|want] {v}",
    "[a menu|food] for [the|our] {e}, [we picked|it is|all want] {v}",
)
DISH_CHANGE: tuple[str, ...] = (
    "[not|no more|instead of] {o}, {v} [for|at] the {e}",
    "the {e} [menu|food] changed from {o} to {v}",
    "we [dropped|cancelled] [the |]{o}, [it is|we eat] {v} [for|at] the {e}",
    "[the |our |]{e} menu [update|changed], {v} and [no|not] {o}",
    "[the |our |]{e} guests [get|eat] {v} now, [not|no] {o}",
)
_RELATION = (
    "{b} and I {v}[, did you know|, by chance|, believe it or not|]",
    "[few know|it is true|did I say|did I tell you] that {b} and I {v}",
    "[me and|I and] {b}, we {v}",
    "you [know|all know|forgot] that {b} and I {v}",
)
NORM_ADD: tuple[str, ...] = (
    "[we all agreed|everyone agreed|remember|rule one|our law|everybody please|it is a rule|please all remember], {r} {w}",
    "{r} {w}, [that is the law here|we agreed|please|everybody]",
    "our [law|custom] [is|says], {r} {w}",
    "[new|our] [rule|law|custom] for [all|everyone|us], {r} {w}",
)
EXCEPTION_ADD: tuple[str, ...] = (
    "{b} [may skip|can skip|is free from|can ignore] {r}",
    "{r}, but [never|not] for {b}",
    "{r} holds for [everyone|all] except {b}",
    "[everyone|all of you] [keep to|keeps to|remember] {r}, [only |but ]{b} is free",
    "{b} [may|can] skip it, {r} is [for the rest|not for {b}]",
    "{r}, [we except|we free] {b}",
)

CHAT: tuple[str, ...] = (
    "[what a|such a|oh what a] [day|week|night|storm|mess]",
    "[need|I need] [more sleep|a nap|a break|new shoes]",
    "[look at|see|did you see] the [moon|rain|snow|clouds][ tonight| now|]",
    "my [screen|laptop|radio|watch|bike] is [frozen|broken|dead|gone]",
    "[back in|give me] [ten|five] minutes[, wait for me|]",
    "that [joke|song|story|clip] was [too good|so funny|awful|great]",
    "I [missed|caught] the [tram|train|bus][, late again| just now|]",
    "[who has|does anyone have] a [pen|charger|map|coin][ for me|]",
    "[good night|good evening|sleep well][ to all of you| all| friends|]",
    "[the news|that film|this book] [is|was] [so sad|so long|boring]",
    "[sure|fine|right|exactly|maybe], [why not|as you like|let us see]",
    "my [keys|shoes|gloves] are [gone|wet|lost], [help|oh no]",
    "[is it|was it] [cold|hot|windy] [outside|out there][ now|]",
    "[wait|stop|hm], I [lost|forgot] the [thread|link|question]",
)
CHAT_TO: tuple[str, ...] = (
    "[well done|bravo|nice one|good one] {b}[, a fine job|]",
    "{b}, [are you there|where are you|say something]",
    "[ha|hm|oh] {b}, [you know it|you again|so funny]",
    "{b}, send me the [link|map|file][ please|]",
    "get well soon {b}",
    "[sorry|hey] {b}, I [forgot|lost] your [message|book|pen]",
)


def _self_trap(doing: str, noun: str) -> tuple[str, ...]:
    return (
        f"{_WHO} {doing}[ all day| again| as well|]",
        f"{_NEWS} [who {doing} is happy|{{v}} is the top {noun}]",
        f"some [strangers|students|sailors] talked about {{v}} as a {noun}",
    )


SELF_TRAP: dict[str, tuple[str, ...]] = {
    "snack": _self_trap("eats {v}", "snack"),
    "drink": _self_trap("drinks {v}", "drink"),
    "city": _self_trap("lives in {v}", "home"),
    "hobby": _self_trap("does {v}", "hobby"),
    "pet": _self_trap("has a pet, a {v},", "pet"),
    "job": _self_trap("works as a {v}", "job"),
    "instrument": _self_trap("plays the {v}", "instrument"),
    "day_off": _self_trap("has a day off on {v}", "day off"),
    "colour": _self_trap("wears {v}", "colour"),
    "allergy": _self_trap("is allergic to {v}", "allergy"),
}


def _other_trap(doing: str, *own: str) -> tuple[str, ...]:
    return (f"{{b}}, {_WHO} {doing}", f"[hey |]{{b}}, the [neighbours|strangers|teachers] say {_WHO} {doing}", *own)


_SHOW = "{b}, they [show|talk about|sing about] {v} on [the news|the radio]"
_SHOP = "{b}, the [market|kiosk|store] [sells|has|lost] a {v}"
_SHUT = "{b}, the [market|kiosk|bank] is [closed|late|full] on {v}"
OTHER_TRAP: dict[str, tuple[str, ...]] = {
    "skill": _other_trap("is good at {v}", _SHOW),
    "late_day": _other_trap("is late on {v}", _SHUT),
    "fear": _other_trap("is afraid of {v}", _SHOW),
    "mood": _other_trap("looks {v}", "{b}, the [news|people at work] made [me|them] {v}"),
    "kit": _other_trap("has a {v}", _SHOP),
    "move": _other_trap("goes to {v} for good", _SHOW),
    "language": _other_trap("studies {v}", _SHOW),
    "saving": _other_trap("wants to buy a {v}", _SHOP),
    "exam": _other_trap("takes an exam on {v}", _SHUT),
}
STANCE_TRAP: tuple[str, ...] = (
    "[the news|the radio|a poster] says the [minister|council|king|press] [supports|opposes|doubts|likes|hates] the {t}[ plan|]",
    "[some strangers|two men|my neighbours] [talk|laughed|sing] about the {t}[ plan|]",
    f"{_WHO} [supports|opposes|doubts|likes|hates] the {{t}}[ plan|]",
)
EVENT_TRAP: tuple[str, ...] = (
    f"{_WHO} has [a|an] {{e}} on {{d}} [at|by] the {{s}}",
    "[two years ago|once|back then] [the|a] {e} was [at|by] the {s} on {d}",
    "[the school|the club|some people] [held|had] a {e} on {d} by the {s}",
    "[the news|the radio] [showed|had] the old {e} of {d} [at|by] the {s}",
)
DISH_TRAP: tuple[str, ...] = (
    f"{_WHO} [cooked|ate|burnt] {{v}} for [a|her|his] {{e}}",
    "the [menu|food] in the canteen was {v}",
    "they [cook|show|eat] {v} on the news",
)
NORM_TRAP: tuple[str, ...] = (
    f"{_WHO} [says|shouts at me|thinks], {{r}} {{w}}",
    "[a poster|a note|a letter] in the [bus|office|hall] says {r} {w}",
)
RELATION_TRAP: tuple[str, ...] = (
    "{b}, [two strangers|my parents|two actors|my teachers] {v}",
    "[two people|two men|a couple] at work {v}, {b}",
    f"{{b}}, {_WHO} and the cook {{v}}",
)


def relation_add(phrases: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The same sentences for every relation: they name it."""
    return {phrase: _RELATION for phrase in phrases}
