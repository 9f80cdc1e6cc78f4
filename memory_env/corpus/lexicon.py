"""The closed world of the home language: who lives in it and which values its facts can take.

Every name and every value is written the same way wherever it occurs, so that it can be copied. Values of one kind occur as
facts of that kind only (cities serve two kinds, days three), which lets a tiny Writer tell the kinds apart.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES: tuple[str, ...] = _words(
    "Ana Ben Cal Dee Eli Fay Gus Hal Ida Jon Kim Leo Mia Ned Ola Pat Quin Rex Sue Tom Uma Vic Wes Zoe"
)

DAYS: tuple[str, ...] = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
CITIES: tuple[str, ...] = _words("Oslo Lima Cairo Porto Kyoto Quito Dublin Seville Hanoi Tunis Bergen Turin Riga Accra")
SPOTS: tuple[str, ...] = _words("harbor library museum beach stadium rooftop bakery castle lake barn pier arcade")

VALUES: dict[str, tuple[str, ...]] = {
    # what people say about themselves
    "snack": _words("olives pretzels almonds raisins popcorn crackers cookies dates cherries pickles figs waffles"),
    "drink": _words("coffee cocoa lemonade cider milk juice matcha kombucha espresso water"),
    "city": CITIES,
    "hobby": _words("pottery climbing fishing sailing origami archery knitting cycling birding surfing fencing rowing"),
    "pet": _words("parrot hamster turtle beagle rabbit gecko kitten ferret canary poodle"),
    "job": _words("nurse baker pilot tailor plumber chemist lawyer welder farmer barber teacher printer"),
    "instrument": _words("violin guitar piano flute cello banjo harp trumpet tuba clarinet"),
    "day_off": DAYS,
    "colour": _words("blue green red yellow purple orange teal pink"),
    "allergy": _words("pollen peanuts shellfish gluten dust wool soy feathers"),
    # what others notice
    "skill": _words("chess juggling singing drawing cooking dancing darts puzzles poker skating"),
    "late_day": DAYS,
    "fear": _words("spiders heights thunder snakes clowns needles bats mice"),
    "mood": _words("tired cheerful nervous bored proud worried relaxed grumpy"),
    "kit": _words("thermos camera blanket notebook lantern toolbox compass radio"),
    # what is passed on
    "move": CITIES,
    "language": _words("Greek Spanish Welsh Danish Polish Hindi Arabic Korean"),
    "saving": _words("kayak scooter laptop tent drone telescope sofa van"),
    "exam": DAYS,
    # what the group settles
    "dish": _words("lasagna curry paella chili risotto ramen tacos dumplings"),
}

TOPICS: tuple[str, ...] = _words("pool gym garden bus bridge market tram mural")
EVENTS: tuple[str, ...] = _words("picnic dinner party hike concert quiz workshop regatta")

STANCES: tuple[str, ...] = ("supports", "opposes", "doubts")

RELATIONS: dict[str, str] = {
    # key -> what stands after "Ana and Ben"
    "cousins": "are cousins",
    "neighbours": "are neighbours",
    "flat": "share a flat",
    "school": "went to school together",
    "carpool": "carpool to work",
    "band": "play in a band",
    "twins": "are twins",
    "stall": "run a market stall",
}

RULES: tuple[str, ...] = (
    "no phones",
    "no gossip",
    "no politics",
    "no shoes",
    "no spoilers",
    "share costs",
    "take turns",
    "bring cups",
    "speak softly",
    "vote first",
)
OCCASIONS: tuple[str, ...] = ("during dinner", "at meetings", "on trips", "during games", "on calls", "at rehearsals")
