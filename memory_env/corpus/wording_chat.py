"""Chit-chat that deserves no record, and traps: chit-chat that names the words and values of memory without being any.

A trap carries the words a question would use ("favourite snack", "picnic", "pool plan") with a wrong value, said by or to a
member whose memory has the right one. Raw search falls for it; a Writer that understood the chat leaves it out.
Slots: `{v}` a value of the trap's kind, `{b}` another member, `{d}` a day, `{s}` a spot, `{e}` an event, `{t}` a topic,
`{r}` a rule, `{w}` an occasion.
"""

from __future__ import annotations

CHAT: tuple[str, ...] = (
    "good morning everyone, how did you sleep",
    "haha that was a good one",
    "what a long day, I am going to bed",
    "anyone awake at this hour",
    "the weather is lovely out there today",
    "I am on the train, bad signal",
    "sorry, wrong chat, please ignore me",
    "who left the lights on last night",
    "be right back, someone is at the door",
    "ok sounds great to me",
    "thanks a lot, that was kind of you",
    "did anyone see the game last night",
    "my phone is at two percent again",
    "happy to help, just shout when you need me",
    "hello from the bus, it is packed",
    "no idea, let me check and get back to you",
    "lol I cannot stop laughing at that photo",
    "see you all later then",
    "I agree with what you just said",
    "traffic is terrible this evening",
)
CHAT_TO: tuple[str, ...] = (
    "thanks {b}, you are the best",
    "hello {b}, how was your weekend",
    "{b}, did you get my photo",
    "happy birthday {b}, have a great one",
    "{b}, call me when you can",
    "good point {b}, I missed that",
    "{b}, I still have your umbrella",
    "haha {b}, you made my day",
)

SELF_TRAP: dict[str, tuple[str, ...]] = {
    "snack": (
        "the snack shelf at work has only {v} left",
        "a poll says {v} is the favourite snack of the year",
    ),
    "drink": (
        "the drink machine is out of {v} again",
        "an ad calls {v} the favourite drink of the stars",
    ),
    "city": (
        "a film about a man who lives in {v} is on",
        "my aunt lives in {v}, she says hello",
    ),
    "hobby": (
        "the main hobby fair had a hall for {v}",
        "a magazine calls {v} the main hobby of kings",
    ),
    "pet": (
        "the pet shop had a {v} in the window",
        "my aunt has a pet, a {v} of all things",
    ),
    "job": (
        "my aunt works as a {v}, she says hello",
        "a show about a man who works as a {v} is on",
    ),
    "instrument": (
        "someone on the radio plays the {v} so badly",
        "the man upstairs plays the {v} at night",
    ),
    "day_off": (
        "the shop takes a day off on {v}",
        "my aunt has a day off on {v}",
    ),
    "colour": (
        "a poll says {v} is the favourite colour of teens",
        "the paint shop has no colour but {v}",
    ),
    "allergy": (
        "a doctor on the radio talked of people allergic to {v}",
        "my aunt is allergic to {v}, poor woman",
    ),
}
OTHER_TRAP: dict[str, tuple[str, ...]] = {
    "skill": ("{b}, my aunt is good at {v}", "{b}, there is a {v} show on tonight"),
    "late_day": ("{b}, the bus is often late on {v}", "{b}, the late film is on {v}"),
    "fear": ("{b}, my aunt is afraid of {v}", "{b}, there is a film about {v} tonight"),
    "mood": ("{b}, my aunt seems {v} lately", "{b}, the crowd at work seems {v}"),
    "kit": ("{b}, my aunt always brings a {v}", "{b}, the shop has a cheap {v}"),
    "move": ("{b}, my boss is moving to {v}", "{b}, there is a film about {v} tonight"),
    "language": ("{b}, my boss is learning {v}", "{b}, there is a {v} film tonight"),
    "saving": ("{b}, my boss is saving for a {v}", "{b}, the shop has a cheap {v}"),
    "exam": ("{b}, my niece has an exam on {v}", "{b}, the shop is shut on {v}"),
}
STANCE_TRAP: tuple[str, ...] = (
    "the paper says the mayor supports the {t} plan",
    "the paper says the mayor opposes the {t} plan",
    "the radio says nobody doubts the {t} plan",
    "who else got the leaflet about the {t} plan",
)
EVENT_TRAP: tuple[str, ...] = (
    "the {e} at my office takes place on {d} at the {s}",
    "last year the {e} was on {d} at the {s}",
    "my aunt says her {e} takes place on {d} at the {s}",
    "some strangers had a {e} at the {s} on {d}",
)
DISH_TRAP: tuple[str, ...] = (
    "the dish of the day at work was {v}",
    "my aunt made {v} for her {e}",
)
NORM_TRAP: tuple[str, ...] = (
    "my boss has a rule, {r} {w}",
    "a sign at the gym says {r} {w}",
)
RELATION_TRAP: tuple[str, ...] = (
    "{b}, two people in my office {v}",
    "the two stars of that show {v}, {b}",
)
