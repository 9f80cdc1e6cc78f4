"""How questions are asked. Every wording keeps the words of the canonical record, so that rules can read issue and rows from it.

Slots: `{a}` the person asked about, `{b}` a second person, `{v}` a value, `{t}` a topic, `{e}` an event, `{r}` a rule,
`{w}` an occasion, `{what}` a clause such as "Ben is good at chess".
"""

from __future__ import annotations

VALUE: dict[str, tuple[str, ...]] = {
    "self.snack": ("What is {a}'s favourite snack?", "Which snack is {a}'s favourite?", "Name {a}'s favourite snack."),
    "self.drink": ("What is {a}'s favourite drink?", "Which drink is {a}'s favourite?", "Name {a}'s favourite drink."),
    "self.city": ("Where does {a} live?", "In which city does {a} live?", "Name where {a} lives."),
    "self.hobby": ("What is {a}'s main hobby?", "Which hobby is {a}'s main one?", "Name {a}'s main hobby."),
    "self.pet": ("What is {a}'s pet?", "Which pet does {a} have?", "Name {a}'s pet."),
    "self.job": ("What does {a} work as?", "As what does {a} work?", "Name what {a} works as."),
    "self.instrument": ("What does {a} play?", "Which instrument does {a} play?", "Name what {a} plays."),
    "self.day_off": ("When is {a}'s day off?", "Which day is {a}'s day off?", "Name {a}'s day off."),
    "self.colour": ("What is {a}'s favourite colour?", "Which colour is {a}'s favourite?", "Name {a}'s favourite colour."),
    "self.allergy": ("What is {a} allergic to?", "To what is {a} allergic?", "Name what {a} is allergic to."),
    "observation.skill": ("What is {a} good at?", "Name what {a} is good at.", "At what is {a} said to be good?"),
    "observation.late_day": ("When is {a} often late?", "On which day is {a} often late?", "Name the day {a} is often late."),
    "observation.fear": ("What is {a} afraid of?", "Of what is {a} afraid?", "Name what {a} is afraid of."),
    "observation.mood": ("How does {a} seem lately?", "What does {a} seem like lately?", "Name how {a} seems lately."),
    "observation.kit": ("What does {a} always bring?", "Name what {a} always brings.", "Which thing does {a} always bring?"),
    "reported.move": ("Where is {a} moving to?", "To which city is {a} moving?", "Name the city {a} is moving to."),
    "reported.language": ("What is {a} learning?", "Which language is {a} learning?", "Name what {a} is learning."),
    "reported.saving": ("What is {a} saving for?", "For what is {a} saving?", "Name what {a} is saving for."),
    "reported.exam": ("When does {a} have an exam?", "On which day does {a} have an exam?", "Name the day {a} has an exam."),
}

BEFORE: dict[str, str] = {
    "self.snack": "What was {a}'s favourite snack before it changed?",
    "self.drink": "What was {a}'s favourite drink before it changed?",
    "self.city": "Where did {a} live before that changed?",
    "self.hobby": "What was {a}'s main hobby before it changed?",
    "self.pet": "What was {a}'s pet before it changed?",
    "self.job": "What did {a} work as before that changed?",
    "self.instrument": "What did {a} play before that changed?",
    "self.day_off": "When was {a}'s day off before it changed?",
    "self.colour": "What was {a}'s favourite colour before it changed?",
    "self.allergy": "What was {a} allergic to before that changed?",
    "stance": "What was {a}'s view of the {t} plan before it changed?",
    "decision.event": "When and where did the {e} take place before that changed?",
    "decision.dish": "What was the dish for the {e} before it changed?",
}
NOW: dict[str, str] = {
    "self.snack": "What is {a}'s favourite snack now?",
    "self.drink": "What is {a}'s favourite drink now?",
    "self.city": "Where does {a} live now?",
    "self.hobby": "What is {a}'s main hobby now?",
    "self.pet": "What is {a}'s pet now?",
    "self.job": "What does {a} work as now?",
    "self.instrument": "What does {a} play now?",
    "self.day_off": "When is {a}'s day off now?",
    "self.colour": "What is {a}'s favourite colour now?",
    "self.allergy": "What is {a} allergic to now?",
    "stance": "What is {a}'s view of the {t} plan now?",
    "decision.event": "When and where does the {e} take place now?",
    "decision.dish": "What is the dish for the {e} now?",
}
CHANGED: dict[str, str] = {
    "self.snack": "How did {a}'s favourite snack change?",
    "self.drink": "How did {a}'s favourite drink change?",
    "self.city": "How did the city {a} lives in change?",
    "self.hobby": "How did {a}'s main hobby change?",
    "self.pet": "How did {a}'s pet change?",
    "self.job": "How did the job {a} works in change?",
    "self.instrument": "How did the instrument {a} plays change?",
    "self.day_off": "How did {a}'s day off change?",
    "self.colour": "How did {a}'s favourite colour change?",
    "self.allergy": "How did what {a} is allergic to change?",
    "stance": "How did {a}'s view of the {t} plan change?",
    "decision.event": "How did the day and spot where the {e} takes place change?",
    "decision.dish": "How did the dish for the {e} change?",
}

EVENT = ("When and where does the {e} take place?", "Name the day and the spot where the {e} takes place.")
EVENT_DAY = ("On which day does the {e} take place?", "Name the day on which the {e} takes place.")
EVENT_SPOT = ("Where does the {e} take place?", "Name the spot at which the {e} takes place.")
DISH = ("What is the dish for the {e}?", "Which dish did the group choose for the {e}?", "Name the dish for the {e}.")
NOTHING = ("What did the group decide?", "Which decision did the group make?")

STANCE_ALL = (
    "What does each person think of the {t} plan?",
    "How does everyone feel about the {t} plan?",
    "Name each member's view of the {t} plan.",
)
STANCE_ONE = (
    "What does {a} think of the {t} plan?",
    "How does {a} feel about the {t} plan?",
    "What is {a}'s view of the {t} plan?",
)
ONLY = ("Who is the only one who {v} the {t} plan?", "Which single member {v} the {t} plan?")

SOURCE_SEEN = ("Who noticed that {what}?", "Who said that {what}?")
SOURCE_TOLD = ("Who told the group that {what}?", "Who said that {what}?")
SOURCE_GROUP = ("Who announced that {what}?", "Who told the group that {what}?")
BELIEF = ("What does {a} say about {b}?", "What did {a} tell the group about {b}?", "What does {a} think of {b}?")

NORM_AT = ("Which rule does the group have {w}?", "What is the group's rule {w}?")
NORM_WHEN = ("When does the group say {r}?", "When do the members say {r}?")
EXCEPTION = ("Who does the {r} rule not apply to?", "Which member does the {r} rule not apply to?")
RELATION = ("What connects {a} and {b}?", "What is the relation between {a} and {b}?", "How are {a} and {b} connected?")
RELATION_WHO = ("Which two members {v}?", "Who are the two that {v}?")

LEFT = ("Who left the group?", "Which member left the group?")
JOINED = ("Who joined the group later?", "Which member joined the group later?")
DEPARTED = "the departed {a}"
