"""The closed world of the embedded corpus: who lives in it and which values its facts can take.

Every name and every value is written the same way wherever it occurs, so that a small tokenizer can hold each as one token.
Values of one kind occur as facts of that kind only (cities serve two kinds), which is what lets a tiny Writer tell the kinds apart.
"""

from __future__ import annotations

NAMES: tuple[str, ...] = tuple(
    "Ana Ben Cal Dee Eli Fay Gus Hal Ida Jon Kim Leo Mia Ned Ola Pat Quin Rex Sue Tom Uma Vic Wes Zoe".split()
)

DAYS: tuple[str, ...] = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
CITIES: tuple[str, ...] = tuple("Oslo Lima Cairo Porto Kyoto Quito Dublin Seville Hanoi Tunis Bergen Turin Riga Accra".split())
SPOTS: tuple[str, ...] = tuple("harbor library museum beach stadium rooftop bakery castle lake barn pier arcade".split())

VALUES: dict[str, tuple[str, ...]] = {
    # what people say about themselves
    "snack": tuple("olives pretzels almonds raisins popcorn crackers cookies dates cherries pickles figs waffles".split()),
    "drink": tuple("coffee cocoa lemonade cider milk juice matcha kombucha espresso water".split()),
    "city": CITIES,
    "hobby": tuple("pottery climbing fishing sailing origami archery knitting cycling birding surfing fencing rowing".split()),
    "pet": tuple("parrot hamster turtle beagle rabbit gecko kitten ferret canary poodle".split()),
    "job": tuple("nurse baker pilot tailor plumber chemist lawyer welder farmer barber teacher printer".split()),
    "instrument": tuple("violin guitar piano flute cello banjo harp trumpet tuba clarinet".split()),
    "day_off": DAYS,
    "colour": tuple("blue green red yellow purple orange teal pink".split()),
    "allergy": tuple("pollen peanuts shellfish gluten dust wool soy feathers".split()),
    # what others notice
    "skill": tuple("chess juggling singing drawing cooking dancing darts puzzles poker skating".split()),
    "late_day": DAYS,
    "fear": tuple("spiders heights thunder snakes clowns needles bats mice".split()),
    "mood": tuple("tired cheerful nervous bored proud worried relaxed grumpy".split()),
    "kit": tuple("thermos camera blanket notebook lantern toolbox compass radio".split()),
    # what is passed on
    "move": CITIES,
    "language": tuple("Greek Spanish Welsh Danish Polish Hindi Arabic Korean".split()),
    "saving": tuple("kayak scooter laptop tent drone telescope sofa van".split()),
    "exam": DAYS,
    # what the group settles
    "dish": tuple("lasagna curry paella chili risotto ramen tacos dumplings".split()),
}

TOPICS: tuple[str, ...] = tuple("pool gym garden bus bridge market tram mural".split())
EVENTS: tuple[str, ...] = tuple("picnic dinner party hike concert quiz workshop regatta".split())

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
    "no phones", "no gossip", "no politics", "no shoes", "no spoilers", "share costs", "take turns", "bring cups", "speak softly", "vote first",
)
OCCASIONS: tuple[str, ...] = ("during dinner", "at meetings", "on trips", "during games", "on calls", "at rehearsals")
