"""How members of the wide language talk about themselves and one another. `[a|b]` is a choice: every message draws anew.

Slots as in `wording_person.py`. The sentences are many and loose, so that a Writer learns what makes a fact of its kind rather
than single sentences by heart.
"""

from __future__ import annotations

_OFTEN = "[all day|every night|between meals|at work|at noon|all week|]"
_END = "[, you know|, no joke|, believe me| by now|||]"
_START = "[well, |honestly, |fun fact, |you know, |guess what, |||]"

SELF_ADD: dict[str, tuple[str, ...]] = {
    "snack": (
        f"{_START}I [always |]munch {{v}} {_OFTEN}",
        f"I [eat|nibble|chew|snack on|crave] {{v}} [all day|at night|when I am hungry|at work|]{_END}",
        f"[a plate|a box|a tin|a pile|a handful|more] of {{v}} [keeps me going|is all I need to eat|stops my hunger]{_END}",
        "my [jar|drawer|pocket|cupboard|backpack] [is|was] [full of|packed with|never without] {v}[ to eat| to nibble| again|]",
        "when [I am hungry|I get hungry|my stomach calls] I [grab|want|reach for|eat|munch] {v}",
        "[so hungry|hungry again|always hungry], [time for|I need|give me|I want] {v}[ to munch| to eat|]",
        "[my favourite snack is|the snack I love is|my top snack is|my snack is always] {v}",
        "[who else eats|nobody eats|I eat more than my share of] {v}[, I fear| as I do|]",
    ),
    "drink": (
        f"{_START}I [always |]drink {{v}} {_OFTEN}",
        f"I [sip|order|pour myself|gulp] {{v}} [all day|at every break|when I am thirsty|with my meals|]{_END}",
        f"[a glass|a mug|a pot|a jug|a sip] of {{v}} [wakes me up|is all I drink|stops my thirst]{_END}",
        "my [mug|glass|flask|fridge] [is|was] [full of|never without|filled with] {v}[ to drink| to sip| again|]",
        "when [I am thirsty|I get thirsty|my throat is dry] I [want|go for|pour|drink|sip] {v}",
        "[so thirsty|thirsty again|always thirsty], [time for|I need|give me|I want] {v}[ to drink| to sip|]",
        "[my favourite drink is|the drink I love is|my top drink is|my drink is always] {v}",
        "[pour|get|bring] me some {v} [please|and I am happy|and we can talk]",
    ),
    "city": (
        "I [rent|own|clean|painted|heat|have] my [flat|house|room] in {v} [now|alone|since spring|with my family|]",
        "my [flat|house|home|street|kitchen|garage|family] is in {v}[, so come over| of course| as ever|]",
        f"[the streets|the trams|the winters|the people] of {{v}} are [my daily life|around my home|home to me]{_END}",
        "I [have lived|settled|stay|am at home] in {v} [for years|since school|with my family|for good]",
        "[my home town is|I call it home,|home is, of course,|I live in good old] {v}",
        "when I look out of my window I see [all of |old |]{v}",
        "[visit me|come and see me|ring my bell|meet my family] in {v}[ at home| this week|]",
        "[the bells|the trams|the birds] of {v} [wake me up|keep me awake|greet me] [each day|at home|in my flat]",
    ),
    "hobby": (
        f"I [spend|use|lose] [every evening|all my free time|each weekend|my holidays] on {{v}}{_END}",
        "my [evenings|free hours|holidays|weekends|sundays] go into {v}[ and only that| of course|]",
        "[nothing relaxes me like|nothing makes me as happy as|I never get tired of|I never have enough of] {v}",
        "I [do|practise|live for|am mad about|am hooked on|dream of] {v} [after work|on weekends|in my free time|every weekend|]",
        "[my main hobby is|the hobby I love is|my one hobby is|as a hobby I chose] {v}",
        "I [joined a club|bought gear|read books|made time] for {v}[ this year| and I love it|]",
        "[in my free time|on weekends|after work] I [only |]do {v}",
        "my club [meets for|does|is mad about] {v} [every weekend|after work|and I love it]",
    ),
    "pet": (
        "my {v} [barks|sleeps|sheds|bites|scratches|hides] [all night|on my bed|too much|under the door|again]",
        "I [feed|walk|brush|wash|cuddle|pet] my {v} [each morning|twice a day|after work|]",
        f"[a|my little|my old] {{v}} [sleeps|lives|waits] [at my feet|in my home|by my door]{_END}",
        "[the vet|my vet] [likes|weighed|checked|saw] my {v} [today|again|last week]",
        "[my pet is a|as a pet I have a|I keep one pet, a|my only pet is a] {v}",
        "who can [feed|walk|mind|take] my {v} [on holiday|while I am away|this weekend]",
        "[each morning|time to|now I must] [feed|walk|brush|wash] [and walk |and feed |]my {v}",
        "my {v} [sleeps|bites|sheds] and [barks|scratches|eats a lot]",
    ),
    "job": (
        "I [work|earn my pay|make my living|am employed|am paid] as a {v}[ in town| since spring| at dawn|]",
        "my [boss|contract|desk|uniform|pay slip] says [I am a |]{v}",
        f"[being a|work as a|my life as a|my work as a] {{v}} [pays my bills|makes me tired|starts at dawn|is hard]{_END}",
        "I [trained for years|studied long|went to college] to be a {v}[ and I like my work|]",
        "[my job is|by trade I am|at work I am|for money I am|now I am] a {v}",
        "my customers [call me|know me as|want me as] [the|their] {v}",
        "I [trained|studied], [now|today] I am a {v} [at last|with a contract|and work all day|]",
        "my boss [pays|needs|praises] me [well |a lot |]as a {v}",
    ),
    "instrument": (
        "I [practise|tune|strum|rehearse|polish] [the|my] {v} [every evening|after work|until late|in my room]",
        "my {v} [is out of tune|needs new strings|sounds sweet|is loud] [when I play|today|in my room|]",
        f"[I take|I give|I need] lessons on [the|my] {{v}} [twice a week|on weekends|]{_END}",
        "[songs|tunes|music] [on|with] my {v} [calm me|keep me up|fill my room]",
        "[my instrument is the|the instrument I chose is the|as for music, I play the|in our hall I play the] {v}",
        "I play [songs on|tunes on|sweet music on] [the|my] {v}",
        "[my lessons|my songs|my scales] on the {v} [are loud|go well|sound sweet|take hours]",
        "[time to|now I will|I must] [practise|rehearse|tune] [the|my] {v}[ in my room|]",
    ),
    "day_off": (
        f"[every|each] {{v}} I [rest|stay home|sleep in|do not work|am off|have no shift|am free]{_END}",
        "I [never work|rest|stay in bed|have no shift|am free|sleep in|stay home] on {v}[ of course|]",
        "my [boss|office|firm|team] [gives me|lets me have|keeps] {v} [free|off][ for me|]",
        "{v} is [mine|my free day|the day I rest|when I sleep in]",
        "[my day off is|I get one day off,|my free day is|I chose as my day off] {v}",
        "no [shift|work|alarm] for me on {v}[, I rest|, I sleep in|]",
        "on {v} I [rest|sleep in|am free|stay home] [all day|in bed|at last|]",
    ),
    "colour": (
        "I [wear|buy|paint|like|choose] [everything|all things|it all|only things] in {v}",
        "my [coat|room|car|hat|shoes|curtains] [is|are|had to be|must be|turned] {v} [of course|as always|like the rest|]",
        "[give me anything|I want it all|wrap my gift|order mine] in {v}",
        f"{{v}} [looks good on me|suits me best|is all over my closet]{_END}",
        "[my favourite colour is|the colour I love is|as a colour I choose|my colour is always] {v}",
        "I [always |only |]wear {v}[ now|, it suits me|]",
        "[time to|I will|I must] paint my [room|car|fence|chair] {v}",
        "I [like|choose|love|buy] {v} [for my coat|for my room|for everything]",
    ),
    "allergy": (
        f"I [sneeze|itch|cough|swell up|get a rash] [from|because of|near|around] {{v}}{_END}",
        "{v} [gives me a rash|is bad for my skin|and I do not mix, I sneeze|is why I cough]",
        "my [nose|skin|throat|body] [hates|cannot stand|warns me of|reacts to|swells from] {v}",
        "[no|never any|please no] {v} [for|near] me, [I itch|I sneeze|it is my skin|I get a rash]",
        "[I am allergic to|my allergy is to|I take pills against] {v}",
        "[a rash|an itch|this cough] again, [it is from|it must be|because of] {v}",
        "my [nose and my throat|skin and my eyes] [react to|hate] {v}",
        "I [sneeze|itch|cough] and [cough|swell up|itch] [from|near|because of] {v}",
    ),
}

_CHANGES = (
    "no more {o}, [it is|I chose|I went for] {v} now",
    "[I am done with|I gave up|I left|I parted with] {o}, [now|these days|from now on] it is {v}",
    "{v} [took the place of|replaced|came after] {o} [for me|in my life]",
    "[once|before|last year] it was {o}, [today|now] it is {v}[ for me|]",
    "it was {o} [once|before], [but today|and now] [I have|it is] {v}",
    "I [changed|went] from {o} to {v}",
)


def _changes(*own: str) -> tuple[str, ...]:
    return (*_CHANGES, *own)


SELF_CHANGE: dict[str, tuple[str, ...]] = {
    "snack": _changes("I [gave up|stopped eating] {o}, now I [eat|munch|nibble] {v}", "[today|now] I munch {v} and not {o}"),
    "drink": _changes("I [gave up|stopped drinking] {o}, now I [drink|sip|pour] {v}", "[today|now] I sip {v} and not {o}"),
    "city": _changes(
        "I [gave up|sold|left] my [flat|house] in {o}, now I [rent|live] in {v}", "my home was in {o}, now it is in {v}"
    ),
    "hobby": _changes("I [gave up|stopped] {o}, now I [do|practise] {v}", "[today|now] I am mad about {v} and not {o}"),
    "pet": _changes("I gave [away|up] my {o}, now I [feed|walk|have] a {v}", "my {o} is gone, now I [feed|walk] a {v}"),
    "job": _changes(
        "I [gave up|left] work as a {o}, now I [am|work as] a {v}", "I was a {o} [once|before], [but today|now] I am a {v}"
    ),
    "instrument": _changes(
        "I gave [away|up] my {o}, now I [play|practise|tune] the {v}", "[today|now] I play the {v} and not the {o}"
    ),
    "day_off": _changes(
        "I [gave up|lost] {o}, now I [rest|am free|sleep in] on {v}", "I [work|have a shift] on {o}, but {v} is free now"
    ),
    "colour": _changes("I [gave up|stopped wearing] {o}, now I [wear|buy] {v}", "[today|now] I paint it {v} and not {o}"),
    "allergy": _changes(
        "{o} is [no problem|harmless] now, but I [sneeze|itch|cough] from {v}", "[today|now] I itch from {v} and not from {o}"
    ),
}

_PLAN = "[ plan| idea| a lot| for sure||]"
_SUPPORTS = (
    f"I [support|back|like|want|favour|welcome] the {{t}}{_PLAN}",
    "[yes|a big yes|thumbs up] [to|for] the {t}[ from me| at last|]",
    "the {t} [gets my yes|makes me happy|is just what we need|is a great idea|is a good thing]",
    "[let us build|I would pay for|I am all for|I hope for] the {t}[, yes|]",
    "I [like|want|back] and [welcome|support|favour] the {t}",
    "[yes|great idea], I [want|back|like] the {t}",
)
_OPPOSES = (
    f"I [oppose|reject|hate|refuse|dislike] the {{t}}{_PLAN}",
    "[no|a clear no|thumbs down] [to|for] the {t}[ from me| at last|]",
    "the {t} [gets my no|makes me angry|is a terrible idea|is bad news|is a bad thing]",
    "[drop|cancel|scrap|ban] [the|that] {t}[, please|, I hate it|]",
    "I [hate|dislike|refuse] and [oppose|reject] the {t}",
    "[no|terrible idea], I [hate|oppose|reject] the {t}",
)
_DOUBTS = (
    f"I [question|wonder about|am unsure about|am torn over|am not sure of] the {{t}}{_PLAN}",
    "[maybe yes, maybe no|perhaps|who can say], the {t}[ puzzles me| is not clear|]",
    "the {t} [puzzles me|needs more thought|is not clear to me|could go either way]",
    "[no opinion yet|still thinking|still torn|not sure yet] on the {t}",
    "I [wonder|think] and [think|wonder] about the {t}, [not sure|still torn]",
    "maybe, [not sure|I am torn], I wonder about the {t}",
)
STANCE_ADD = {"supports": _SUPPORTS, "opposes": _OPPOSES, "doubts": _DOUBTS}
_TURN = "[on second thoughts|I thought again and|I was wrong,|new day, new mind,] "
STANCE_CHANGE = {view: tuple(_TURN + text for text in texts) for view, texts in STANCE_ADD.items()}

OBSERVATION_ADD: dict[str, tuple[str, ...]] = {
    "skill": (
        "{b} is [great|brilliant|amazing|so strong|the best|so clever] at {v}",
        "[you should see|I saw|we saw|have you seen] {b} [win|shine|compete] at {v}",
        "{b} [won|beat us all|came first] at {v} [again|last night|]",
        "[I admire|I learnt from|we all learnt from] {b}, [a pro|so good|a real talent] at {v}",
        "{b}, you are [so good|a star|a pro|a talent] at {v}",
        "[a prize|applause] for {b}, what [skill|talent] at {v}",
    ),
    "late_day": (
        "{b} [was|came|showed up|arrived] late [again|as usual|] on {v}",
        "on {v} {b} [is never|was not] on time",
        "[every|each] {v} we [wait for|start without|miss] {b}",
        "{b} [overslept|missed the start|kept us waiting|was late] [this|last|every|on] {v}",
        "[how come|I see that] {b} is late [each|every|on] {v}",
    ),
    "fear": (
        "{b} is [so |]scared of {v}",
        "{b} [runs from|shakes at|cries at|screams at|is terrified of] {v}",
        "[I saw|we saw] {b} [shake|run|cry|scream] [at|because of] {v}",
        "[keep|hide] [the|those] {v} from {b}[, so scared|]",
        "{v} [scare|frighten|terrify] {b}[, I can tell|]",
    ),
    "mood": (
        "{b} [looks|sounds|acts] [so|very|a bit] {v} [lately|today|]",
        "[why is|how come] {b} [so|this] {v}",
        "[I notice|I see|I feel] {b} is {v} [lately|all week|today]",
        "{b}, [are you|you are|you sound] [so |]{v}",
        "all week {b} [was|looked|sounded] {v}",
    ),
    "kit": (
        "{b} [has|carries|packs|holds] [a|that] {v} [everywhere|every time|in the bag|on every trip]",
        "[where|when] {b} goes, a {v} [goes too|comes along]",
        "[ask|trust] {b} for a {v}, it is always in the bag",
        "{b} and [that|a] {v}, [always together|never apart]",
        "on every [trip|walk] {b} [has|carries|packs] a {v}",
    ),
}

_HEARD = "[, I hear|, I was told||]"
REPORT_ADD: dict[str, tuple[str, ...]] = {
    "move": (
        "{b} [told me|says|said] the new [flat|house|home] is in {v}",
        f"{{b}} [is leaving|is off|packs all] for {{v}} [soon|for good|next month]{_HEARD}",
        "[I hear|I was told|word is] {b} [goes|is off|emigrates] to {v} [soon|for good|next month]",
        f"{{b}} [found|bought|rented] a [flat|house|new home] in {{v}}{_HEARD}",
        f"{{b}} starts a new life in {{v}}{_HEARD}",
    ),
    "language": (
        "{b} [told me|says|said] [the|those] {v} [words|lessons] are [hard|fun]",
        "[I hear|I was told|word is] {b} [studies|practises] {v} [at night|with a tape|]",
        f"{{b}} [took up|signed up for|goes to|likes] {{v}} lessons{_HEARD}",
        "{b} [told me|said] the grammar of {v} is [hard|fun]",
        f"{{b}} [studies|practises|reads] {{v}} [grammar|words] at night{_HEARD}",
    ),
    "saving": (
        "{b} [told me|says|said] the [money|piggy bank|cash] is for a {v}",
        "[I hear|I was told|word is] {b} [saves|puts money aside|keeps cash] for a {v}",
        f"{{b}} [wants|hopes|plans] to [buy|get] a {{v}} one day{_HEARD}",
        "{b} [told me|said] a {v} costs [so much|a lot of] [money|cash]",
    ),
    "exam": (
        "{b} [told me|says|said] the [exam|paper|finals] [is|comes|falls] on {v}",
        "[I hear|I was told|word is] {b} [sits|takes] [an exam|a test|finals] on {v}",
        f"{{b}} [studies|revises|crams] for [the test|an exam|finals] on {{v}}{_HEARD}",
        f"{{b}} [sits|takes] [a test|an exam|finals] on {{v}}{_HEARD}",
    ),
}

JOIN_ADD: tuple[str, ...] = (
    "[hi|hello|hey|good day][ all| friends| folks|], [I just joined|I am new|new member here|I got the invite]",
    "[I am new|new here|new member]{}[, please be nice|, hello|, nice to meet you]".replace("{}", "[ in this chat| today|]"),
    "[happy|glad|nice] to [be|join] [in this group|here at last|in this chat], [I just joined|I got the invite]",
)
LEAVE_SELF: tuple[str, ...] = (
    "[farewell|goodbye|bye][ all| friends| folks|], I [leave|quit] [this|the] [group|chat][ today| now|]",
    "I [leave|quit] [this|the] [group|chat], [farewell|goodbye|bye]",
    "[bye|goodbye|farewell] [for ever|and all the best], this is [the end|it] for me[ here|]",
)
LEAVE_REPORTED: tuple[str, ...] = (
    "{b} [has |]left [us|the group|this chat][ today| for ever|, I hear|]",
    "[farewell|goodbye|bye] to {b}, [gone|off|away] [for ever|from this chat|from us]",
    "{b} [has |]quit the [group|chat][, farewell|, I hear|]",
)
