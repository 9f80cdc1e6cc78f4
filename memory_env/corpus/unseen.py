"""The language of `corpus:unseen`: no name, no value and no wording of any conversation that a Writer is trained on.

Nothing is drawn from here but the frozen networks of that set. Function words and everyday words (eat, late, yes) stand in the
sentences of all languages.
"""

from __future__ import annotations

from memory_env.corpus.phrasebook import Phrasebook, words

_DAYS = words("Easter Halloween Christmas Epiphany Midsummer Pentecost Carnival")
_CITIES = words("Prague Madrid Boston Nairobi Havana Krakow Delhi Sydney Geneva Malmo Tampa Perth Bogota Dakar")
_RELATIONS = (
    "are penfriends",
    "are rivals",
    "share an allotment",
    "coach beginners",
    "own a boat",
    "met in kindergarten",
    "write a blog",
    "collect stamps",
)

UNSEEN = Phrasebook(
    name="unseen",
    names=words(
        "Abel Bria Cleo Dirk Enzo Freya Gwen Hugo Iris Jade Kurt Lola"
        " Milo Nora Otto Petra Rosa Sven Tara Ugo Vera Wanda Yuri Zelda"
    ),
    days=_DAYS,
    spots=words("temple vineyard quarry lighthouse chapel orchard warehouse canal meadow cottage pavilion theatre"),
    topics=words("tunnel airport fountain cinema zoo windmill casino skatepark"),
    events=words("wedding barbecue festival parade tournament marathon sleepover banquet"),
    rules=(
        "no whispering",
        "no hats",
        "no perfume",
        "no selfies",
        "never litter",
        "never swear",
        "always knock",
        "bring firewood",
        "share leftovers",
        "keep receipts",
    ),
    occasions=("at weddings", "in tents", "before sunrise", "after midnight", "on ferries", "during storms"),
    values={
        "snack": words("biscuits walnuts grapes celery jerky nachos muffins prunes granola liquorice toffee radishes"),
        "drink": words("mocha lassi sherry eggnog sake cordial mead buttermilk seltzer ale"),
        "city": _CITIES,
        "hobby": words(
            "quilting skiing bowling jogging yodelling whittling caving gliding calligraphy snorkelling beekeeping carpentry"
        ),
        "pet": words("goldfish tortoise iguana budgie hedgehog spaniel python alpaca chinchilla tarantula"),
        "job": words("florist mechanic butcher surgeon jeweller architect cashier joiner locksmith midwife translator optician"),
        "instrument": words("oboe saxophone viola organ ukulele bassoon mandolin accordion xylophone zither"),
        "day_off": _DAYS,
        "colour": words("crimson silver violet beige maroon indigo turquoise ivory amber"),
        "allergy": words("latex mustard sesame mould nickel eggs lupin aspirin"),
        "skill": words("karate tennis billiards sudoku magic fractions haggling ironing whistling parking"),
        "late_day": _DAYS,
        "fear": words("sharks dogs lifts ghosts wasps rats caves moths"),
        "mood": words("gloomy moody jolly anxious dreamy grouchy restless upbeat"),
        "kit": words("penknife torch hammock stopwatch raincoat magnet cushion ladder"),
        "move": _CITIES,
        "language": words("Finnish Swahili Czech Latin Turkish Dutch Basque Tamil"),
        "saving": words("tractor canoe caravan greenhouse jukebox snowboard loom drumkit"),
        "exam": _DAYS,
        "dish": words("goulash pizza sushi fondue moussaka pancakes stroganoff gumbo"),
    },
    relations={phrase: phrase for phrase in _RELATIONS},
    self_add={
        "snack": (
            "at work I always munch {v} when I am hungry",
            "hungry again, time to eat more {v}",
            "my drawer and my pocket are full of {v}",
            "I nibble {v}, nobody can stop me",
        ),
        "drink": (
            "at every break I pour myself a mug of {v}",
            "thirsty again, time to drink more {v}",
            "my fridge and my flask are full of {v}",
            "I sip {v}, nobody can stop me",
        ),
        "city": (
            "my house and my street are in {v}, come and see",
            "all my family and I stay in {v} for years",
            "I clean my flat in {v} every weekend",
            "home again in {v}, the trams woke me up",
        ),
        "hobby": (
            "after work I practise {v} in my free time",
            "all my weekends and holidays go into {v}",
            "I am so hooked on {v}, nobody can stop me",
            "my club and I do {v} every weekend",
        ),
        "pet": (
            "each morning I walk my {v} and brush it",
            "my {v} sleeps on my bed and bites",
            "the vet checked my {v} this morning",
            "time to feed and wash my {v}",
        ),
        "job": (
            "at dawn I start work as a {v}, I am tired",
            "well paid by my boss, I am a {v}",
            "I trained so long and now I am a {v}",
            "my uniform and my contract say {v}",
        ),
        "instrument": (
            "until late I rehearse and tune my {v}",
            "so loud, all my songs on the {v}",
            "I strum my {v} and play sweet songs",
            "in my room I practise songs for the {v}",
        ),
        "day_off": (
            "I sleep in and stay home on {v}",
            "no shift and no work for me on {v}",
            "every {v} I am free, I rest in bed",
            "my firm keeps {v} off for me, I rest",
        ),
        "colour": (
            "my hat and my coat must be {v}",
            "it suits me so well, I wear {v}",
            "time to paint my room {v} like my car",
            "I choose and buy all in {v}",
        ),
        "allergy": (
            "my throat and my nose react to {v}",
            "a rash again, I itch from {v}",
            "because of {v} I cough and sneeze",
            "no {v} for me please, my skin hates it",
        ),
    },
    self_change={
        "snack": (
            "now I munch {v}, I gave up all {o}",
            "it was {o} once but today I eat {v}",
        ),
        "drink": (
            "now I sip {v}, I gave up all {o}",
            "it was {o} once but today I drink {v}",
        ),
        "city": (
            "now I rent in {v}, I gave up my flat in {o}",
            "my house was in {o} once but today it is in {v}",
        ),
        "hobby": (
            "now I practise {v}, I gave up all {o}",
            "it was {o} once but today I am mad about {v}",
        ),
        "pet": (
            "now I feed a {v}, I gave up my {o}",
            "it was my {o} once but today I walk a {v}",
        ),
        "job": (
            "now I work as a {v}, I gave up life as a {o}",
            "I was a {o} once but today I work as a {v}",
        ),
        "instrument": (
            "now I practise the {v}, I gave up my {o}",
            "it was my {o} once but today I play the {v}",
        ),
        "day_off": (
            "now I rest on {v}, I gave up my {o}",
            "it was {o} once but today I am free on {v}",
        ),
        "colour": (
            "now I wear {v}, I gave up all {o}",
            "it was {o} once but today I paint it all {v}",
        ),
        "allergy": (
            "{o} was the old one, now I sneeze from {v}",
            "it was {o} once but today I itch from {v}",
        ),
    },
    stance_add={
        "supports": (
            "yes, I want the {t}, a great idea",
            "I welcome and back the {t} a lot",
            "I hope for the {t}, so thumbs up",
        ),
        "opposes": (
            "no, I hate the {t}, a terrible idea",
            "I reject and oppose the {t} a lot",
            "scrap the {t}, so thumbs down",
        ),
        "doubts": (
            "maybe the {t} is good, I am still torn",
            "I wonder about the {t} a lot, not sure",
            "the {t} is not clear, who can say",
        ),
    },
    stance_change={
        "supports": ("yes, I back the {t} on second thoughts", "I was wrong, I want and welcome the {t} now"),
        "opposes": ("no, I reject the {t} on second thoughts", "I was wrong, I hate and oppose the {t} now"),
        "doubts": ("maybe, I wonder about the {t} on second thoughts", "I was wrong, I am torn and unsure about the {t} now"),
    },
    observation_add={
        "skill": (
            "so much talent, I admire {b} at {v}",
            "I saw {b} win, brilliant at {v}",
            "we all learnt {v} from {b}, so good",
        ),
        "late_day": (
            "{b} overslept and came late on {v}",
            "as usual {b} kept us waiting on {v}",
            "we had to start without {b} every {v}",
        ),
        "fear": (
            "I saw {b} shake and cry because of {v}",
            "poor {b} is so scared, hide the {v}",
            "{b} runs and screams from {v}",
        ),
        "mood": (
            "I notice that {b} looks so {v}",
            "all week {b} acts and sounds {v}",
            "I see you, {b}, you are {v} today",
        ),
        "kit": (
            "on every trip {b} packs and carries a {v}",
            "trust {b}, that {v} is always in the bag",
            "{b} goes everywhere and has a {v}",
        ),
    },
    report_add={
        "move": (
            "I was told {b} found a new flat in {v}",
            "{b} said the new life starts in {v}",
            "soon {b} is off to a house in {v}, I hear",
        ),
        "language": (
            "I was told {b} goes to lessons in {v}",
            "hard grammar in {v}, {b} said",
            "at night {b} studies {v} words, I hear",
        ),
        "saving": (
            "cash for a {v}, I was told {b} keeps it",
            "{b} said a {v} is why the piggy bank is full",
            "one day {b} wants to buy a {v}, I hear",
        ),
        "exam": (
            "a test on {v}, I was told {b} sits it",
            "{b} said the finals come on {v}",
            "soon {b} takes an exam, on {v}, I hear",
        ),
    },
    event_add=(
        "all said yes, on {d} we do the {e} at the {s}",
        "it is fixed and booked, {e} at the {s} on {d}",
        "we all gather at the {s} this {d}, {e} time",
    ),
    event_change=(
        "sorry, {e} update, now it is {d} at the {s}",
        "the old date is off, {e} on {d} at the {s} now",
        "our {e} moved, all go to the {s} on {d}",
    ),
    dish_add=(
        "we all voted, {v} is the food at the {e}",
        "it is fixed, {e} guests eat {v}",
        "the group picked a menu for the {e}, {v}",
    ),
    dish_change=(
        "{v} on the {e} menu now and no {o}",
        "we dropped the {o}, {e} guests eat {v} now",
    ),
    relation_add={
        phrase: ("say, you all know {b} and I {v}", "{b} and I {v}, is it not funny", "some of you know it, {b} and I {v}")
        for phrase in _RELATIONS
    },
    norm_add=(
        "please all remember our law, {r} {w}",
        "everyone agreed and it is a rule, {r} {w}",
        "new custom for us all, {r} {w}",
    ),
    exception_add=(
        "{b} can skip it, {r} is not for all",
        "{r}, but we except {b}",
        "only {b} is free, the rest keep to {r}",
    ),
    join_add=(
        "I am new here, good day to all of you",
        "hey all, new member, I got the invite today",
        "I just joined, nice to meet the group",
    ),
    leave_self=(
        "today I leave this group, so farewell",
        "I quit the chat, goodbye friends",
        "this is the end for me here, bye friends",
    ),
    leave_reported=(
        "{b} left us today, farewell",
        "gone for ever is {b}, goodbye",
        "I hear {b} has quit this group",
    ),
    chat=(
        "did the rain stop at last",
        "I need more sleep, what a week",
        "look at the moon, so big tonight",
        "hm, my screen is frozen",
        "ten minutes and I am back, wait",
        "too good, that joke",
        "late again, I missed the tram",
        "who has a pen and some paper",
        "to all of you a good night",
        "the news today, oh dear",
        "why not, sure",
        "help, are my keys gone",
    ),
    chat_to=(
        "a fine job {b}, well done",
        "where did you go {b}",
        "ha, good one {b}",
        "please send me the link, {b}",
        "soon you get well {b}",
    ),
    self_trap={
        "snack": ("my landlord only eats {v}", "a study says {v} is the top snack of teachers"),
        "drink": ("my landlord only drinks {v}", "a study says {v} is the top drink of teachers"),
        "city": ("my landlord lives in {v}, poor man", "who lives in {v} is happy, says a study"),
        "hobby": ("my landlord only does {v}", "a study says {v} is the top hobby of teachers"),
        "pet": ("my landlord has a pet, a big {v}", "a sailor lost a {v}, a strange pet"),
        "job": ("my landlord works as a {v} in town", "who works as a {v} is happy, says a study"),
        "instrument": ("my landlord only plays the {v}", "who plays the {v} is happy, says a study"),
        "day_off": ("my landlord has {v} as a day off", "a study says teachers take a day off on {v}"),
        "colour": ("my landlord only wears {v}", "a study says {v} is the top colour of teachers"),
        "allergy": ("my landlord is allergic to {v}, poor man", "a study says many are allergic to {v}"),
    },
    other_trap={
        "skill": ("my landlord is good at {v}, {b}", "{v} is on the news, {b}"),
        "late_day": ("{b}, my landlord is often late on {v}", "the market opens late on {v}, {b}"),
        "fear": ("my landlord is afraid of {v}, {b}", "{v} is on the news, {b}"),
        "mood": ("{b}, my landlord seems {v} lately", "they seem {v} on the news, {b}"),
        "kit": ("{b}, my landlord always brings a {v}", "the market sells a cheap {v}, {b}"),
        "move": ("{b}, my landlord is moving to {v}", "{v} is on the news, {b}"),
        "language": ("{b}, my landlord is learning {v}", "{b}, the news in {v} is on"),
        "saving": ("{b}, my landlord is saving for a {v}", "the market sells a cheap {v}, {b}"),
        "exam": ("{b}, my landlord has an exam on {v}", "{b}, the market is shut on {v}"),
    },
    stance_trap=(
        "the minister supports the {t} plan, says the news",
        "the minister opposes the {t} plan, says the news",
        "about the {t} plan some strangers talk",
    ),
    event_trap=(
        "my landlord has an {e} on {d} at the {s}, he says",
        "they show the old {e} of {d} by the {s} on the news",
    ),
    dish_trap=(
        "my landlord burnt {v} for his {e} again",
        "they show how to cook {v} on the news",
    ),
    norm_trap=(
        "every day my landlord shouts, {r} {w}",
        "the bus has a poster, {r} {w}",
    ),
    relation_trap=(
        "my landlord and the cook {v}, {b}",
        "on the news two strangers {v}, {b}",
    ),
)
