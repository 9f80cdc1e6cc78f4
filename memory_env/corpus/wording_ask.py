"""How questions are asked. Every wording keeps the words of the canonical record, so that rules can read issue and rows from it.

Slots: `{a}` the person asked about, `{b}` a second person, `{v}` a value, `{t}` a topic, `{e}` an event, `{r}` a rule, `{w}` an occasion,
`{what}` a clause such as "Ben is good at chess".
"""

from __future__ import annotations

VALUE: dict[str, tuple[str, ...]] = {
    "self.snack": ("What is {a}'s favourite snack?", "Which snack is {a}'s favourite?", "Name {a}'s favourite snack."),
    "self.drink": ("What is {a}'s favourite drink?", "Which drink is {a}'s favourite?", "Name {a}'s favourite drink."),
    "self.city": ("Where does {a} live?", "In which city does {a} live?", "Name the place where {a} lives."),
    "self.hobby": ("What is {a}'s main hobby?", "Which hobby is {a}'s main one?", "Name {a}'s main hobby."),
    "self.pet": ("What is {a}'s pet?", "Which pet does {a} have?", "Name {a}'s pet."),
    "self.job": ("What does {a} work as?", "As what does {a} work?", "Name the job {a} works in."),
    "self.instrument": ("What does {a} play?", "Which instrument does {a} play?", "Name what {a} plays."),
    "self.day_off": ("When is {a}'s day off?", "Which day is {a}'s day off?", "Name {a}'s day off."),
    "self.colour": ("What is {a}'s favourite colour?", "Which colour is {a}'s favourite?", "Name {a}'s favourite colour."),
    "self.allergy": ("What is {a} allergic to?", "To what is {a} allergic?", "Name what {a} is allergic to."),
    "observation.skill": ("What is {a} good at?", "Name what {a} is good at.", "At what is {a} said to be good?"),
    "observation.late_day": ("When is {a} often late?", "On which day is {a} often late?", "Name the day on which {a} is often late."),
    "observation.fear": ("What is {a} afraid of?", "Of what is {a} afraid?", "Name what {a} is afraid of."),
    "observation.mood": ("How does {a} seem lately?", "What does {a} seem like lately?", "Name how {a} seems lately."),
    "observation.kit": ("What does {a} always bring?", "Name what {a} always brings.", "Which thing does {a} always bring?"),
    "reported.move": ("Where is {a} moving to?", "To which city is {a} moving?", "Name the city {a} is moving to."),
    "reported.language": ("What is {a} learning?", "Which language is {a} learning?", "Name what {a} is learning."),
    "reported.saving": ("What is {a} saving for?", "For what is {a} saving?", "Name what {a} is saving for."),
    "reported.exam": ("When does {a} have an exam?", "On which day does {a} have an exam?", "Name the day {a} has an exam."),
}

LABEL: dict[str, str] = {
    # the thing that can change, for "before" and "how did it change" questions
    "self.snack": "{a}'s favourite snack",
    "self.drink": "{a}'s favourite drink",
    "self.city": "the place where {a} lives",
    "self.hobby": "{a}'s main hobby",
    "self.pet": "{a}'s pet",
    "self.job": "what {a} works as",
    "self.instrument": "what {a} plays",
    "self.day_off": "{a}'s day off",
    "self.colour": "{a}'s favourite colour",
    "self.allergy": "what {a} is allergic to",
    "stance": "{a}'s view of the {t} plan",
    "decision.event": "the day and spot at which the {e} takes place",
    "decision.dish": "the dish for the {e}",
}
BEFORE = ("What was {x} before it changed?", "What was {x} before the last change?")
NOW = ("What is {x} now?", "After all changes, what is {x}?")
CHANGED = ("How did {x} change?", "How has {x} changed over time?")

EVENT = ("When and where does the {e} take place?", "Name the day and the spot where the {e} takes place.")
EVENT_DAY = ("On which day does the {e} take place?", "Name the day on which the {e} takes place.")
EVENT_SPOT = ("Where does the {e} take place?", "Name the spot at which the {e} takes place.")
DISH = ("What is the dish for the {e}?", "Which dish did the group choose for the {e}?", "Name the dish for the {e}.")
NOTHING = ("What did the group decide?", "Which decision did the group make?")

STANCE_ALL = ("What does each person think of the {t} plan?", "How does everyone feel about the {t} plan?", "Name each member's view of the {t} plan.")
STANCE_ONE = ("What does {a} think of the {t} plan?", "How does {a} feel about the {t} plan?", "What is {a}'s view of the {t} plan?")
ONLY = ("Who is the only one who {v} the {t} plan?", "Which single member {v} the {t} plan?")

SOURCE_SEEN = ("Who noticed that {what}?", "Who said that {what}?")
SOURCE_TOLD = ("Who told the group that {what}?", "Who said that {what}?")
SOURCE_GROUP = ("Who announced that {what}?", "Who told the group that {what}?")
BELIEF = ("What does {a} say about {b}?", "What did {a} tell the group about {b}?", "What does {a} think of {b}?")

NORM_AT = ("Which rule does the group have {w}?", "What is the group's rule {w}?")
NORM_WHEN = ("When does the group say {r}?", "On which occasion does the group say {r}?")
EXCEPTION = ("To whom does the {r} rule not apply?", "For which member does the {r} rule not apply?")
RELATION = ("What connects {a} and {b}?", "What is the relation between {a} and {b}?", "How are {a} and {b} connected?")
RELATION_WHO = ("Which two members {v}?", "Name the two members who {v}.")

LEFT = ("Who left the group?", "Which member left the group?")
JOINED = ("Who joined the group later?", "Which member joined the group later?")
DEPARTED = ("{a} is gone for good: {q}", "About {a}, who went away: {q}")
