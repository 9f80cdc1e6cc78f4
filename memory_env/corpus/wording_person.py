"""How people in the corpus say things about themselves and about one another.

Slots: `{v}` the value, `{o}` the value it replaces, `{b}` the member spoken about, `{t}` the topic of a plan.
Most first-person wordings avoid the words of the canonical record, so that searching the raw messages for them finds little.
"""

from __future__ import annotations

SELF_CONTENT: dict[str, str] = {
    "snack": "{a}'s favourite snack is {v}",
    "drink": "{a}'s favourite drink is {v}",
    "city": "{a} lives in {v}",
    "hobby": "{a}'s main hobby is {v}",
    "pet": "{a}'s pet is a {v}",
    "job": "{a} works as a {v}",
    "instrument": "{a} plays the {v}",
    "day_off": "{a}'s day off is {v}",
    "colour": "{a}'s favourite colour is {v}",
    "allergy": "{a} is allergic to {v}",
}

SELF_ADD: dict[str, tuple[str, ...]] = {
    "snack": (
        "I could eat {v} all day long",
        "guess who finished a whole bag of {v} again",
        "there is always a bowl of {v} on my desk",
        "nothing beats {v} when I watch a film",
        "please hide the {v} from me, I have no limits",
        "my grandma still mails me {v} because she knows me",
        "for me the best snack is {v}",
    ),
    "drink": (
        "I cannot start a morning without {v}",
        "first thing I order anywhere is {v}",
        "three cups of {v} and I am human again",
        "make mine a large {v} please, as usual",
        "if you visit me there will be {v} in every glass",
        "you will never see me without a bottle of {v}",
        "my drink of choice is {v}",
    ),
    "city": (
        "greetings from my flat in {v}, it is raining",
        "ten years in {v} and I still get lost here",
        "my address is in {v}, come visit",
        "the rent here in {v} is killing me",
        "I wake up to the bells of {v} every day",
        "home for me means {v}",
        "I live in {v}, near the station",
    ),
    "hobby": (
        "every spare hour of mine goes into {v}",
        "my weekends are all about {v}",
        "I spent my savings on {v} gear once more",
        "ask me anything about {v}, I never stop",
        "since I was nine I have been crazy about {v}",
        "sorry I missed your call, I was deep in {v}",
        "my hobby of choice is {v}",
    ),
    "pet": (
        "my {v} woke me up at five again",
        "the vet says my {v} is too fat",
        "I need someone to feed my {v} next week",
        "there is {v} hair all over my sofa",
        "my {v} hates the new neighbour",
        "I share my home with a noisy {v}",
        "I got a pet, it is a {v}",
    ),
    "job": (
        "after six years as a {v} my back hurts",
        "they pay me to be a {v}, can you believe it",
        "I earn my money as a {v}",
        "my badge says {v} and my boss agrees",
        "nobody told me a {v} gets up this early",
        "my shift as a {v} ends at six",
        "I work as a {v} in a small firm",
    ),
    "instrument": (
        "my neighbours complain about my {v} every evening",
        "I practised the {v} until my fingers hurt",
        "I brought my {v} and nobody ran away",
        "I spent a fortune on my {v}, now I am broke",
        "give me a {v} and I will entertain you",
        "my {v} teacher says I improve slowly",
        "I play the {v} in my free time",
    ),
    "day_off": (
        "on {v} the office never sees me",
        "I sleep until noon every {v}",
        "do not call me on {v}, I rest then",
        "I do nothing at all each {v}",
        "my boss gave me every {v} for myself",
        "I keep {v} free for my garden",
        "my day off is {v}",
    ),
    "colour": (
        "I painted all my walls {v}",
        "half of my clothes are {v} by now",
        "if it comes in {v} I will buy it",
        "my bike, my bag, my door, all {v}",
        "seeing {v} makes me happy every time",
        "even my toothbrush had to be {v}",
        "the colour I like most is {v}",
    ),
    "allergy": (
        "my eyes swell up from {v}",
        "keep {v} away from me or I sneeze for hours",
        "the doctor says no more {v} near me",
        "last time I touched {v} I ended up in hospital",
        "one bit of {v} and my skin goes red",
        "I carry a pen because of {v}",
        "I have an allergy to {v}",
    ),
}

SELF_CHANGE: dict[str, tuple[str, ...]] = {
    "snack": (
        "I went off {o}, now I could eat {v} all day",
        "no more {o} for me, I am hooked on {v}",
        "I replaced the {o} on my desk with {v}",
        "turns out {v} beat {o} by far",
    ),
    "drink": (
        "I gave up {o}, these days I order {v}",
        "no more {o} in the morning, it is {v} now",
        "my cup holds {v} now instead of {o}",
        "the doctor took my {o} away, so {v} it is",
    ),
    "city": (
        "boxes unpacked, I left {o} and my flat is in {v} now",
        "goodbye {o}, my new address is in {v}",
        "I swapped the rain of {o} for the sun of {v}",
        "it is official, I traded {o} for {v}",
    ),
    "hobby": (
        "I sold my {o} gear, my weekends belong to {v} now",
        "my {o} got boring so I am all into {v}",
        "no time for {o} since I discovered {v}",
        "I dropped {o} and fell in love with {v}",
    ),
    "pet": (
        "my old {o} died in spring, now a {v} keeps me company",
        "I gave the {o} to my sister and took in a {v}",
        "the {o} moved out and a {v} moved in with me",
        "no more {o} at my place, a {v} sleeps here now",
    ),
    "job": (
        "I quit being a {o}, from today I am a {v}",
        "new badge, it says {v} and no longer {o}",
        "they trained me, I went from {o} to {v}",
        "no more {o} shifts, I earn my money as a {v} now",
    ),
    "instrument": (
        "I sold the {o} and bought a {v}",
        "my {o} is gone, I practise the {v} now",
        "I switched from {o} to {v} and love it",
        "no more {o}, my fingers prefer the {v}",
    ),
    "day_off": (
        "my boss moved my rest from {o} to {v}",
        "I work on {o} now and sleep on {v} instead",
        "no longer {o}, from now on {v} is mine",
        "new rota, I swapped {o} for {v}",
    ),
    "colour": (
        "I am over {o}, everything I buy is {v} now",
        "I repainted my walls from {o} to {v}",
        "goodbye {o}, {v} makes me happier now",
        "my bike was {o}, now it is {v} like all I own",
    ),
    "allergy": (
        "good news, {o} is fine now but {v} makes me sneeze",
        "new test, it is not {o} after all, it is {v}",
        "the doctor crossed out {o} and wrote down {v}",
        "it was never {o}, my skin hates {v}",
    ),
}

STANCE_CONTENT = "{a} {v} the {t} plan"
STANCE_ADD: dict[str, tuple[str, ...]] = {
    "supports": (
        "you can count on me for the {t}",
        "the {t} idea has my vote",
        "I would sign for the {t} right now",
        "finally someone thought of the {t}, I love it",
        "build that {t} already, I say yes",
        "the {t} is the best thing they came up with",
        "I am in favour of the {t} plan",
    ),
    "opposes": (
        "not with my money, that {t} must never happen",
        "the {t} thing is a waste, I vote no",
        "I will fight the {t} until the end",
        "please no, anything but the {t}",
        "I signed the letter to stop the {t}",
        "the {t} is the worst thing they came up with",
        "I am against the {t} plan",
    ),
    "doubts": (
        "the {t}, hmm, I am on the fence",
        "I cannot make up my mind about the {t}",
        "the {t} may work or may not, who knows",
        "I would want more numbers before I judge the {t}",
        "half of me likes the {t} and half does not",
        "the {t} leaves me with many questions",
        "I have my doubts about the {t} plan",
    ),
}
STANCE_CHANGE: dict[str, tuple[str, ...]] = {
    "supports": (
        "I changed my mind, the {t} has my vote after all",
        "you convinced me, now I say yes to the {t}",
        "I take it back, count on me for the {t}",
    ),
    "opposes": (
        "I changed my mind, I vote no on the {t} now",
        "after seeing the bill I say stop the {t}",
        "I take it back, please no {t}",
    ),
    "doubts": (
        "I changed my mind, now I am on the fence about the {t}",
        "lately I am not so sure about the {t} any more",
        "I take it back, the {t} leaves me with questions",
    ),
}

OBSERVATION_CONTENT: dict[str, str] = {
    "skill": "{b} is good at {v}",
    "late_day": "{b} is often late on {v}",
    "fear": "{b} is afraid of {v}",
    "mood": "{b} seems {v} lately",
    "kit": "{b} always brings a {v}",
}
OBSERVATION_ADD: dict[str, tuple[str, ...]] = {
    "skill": (
        "nobody beats {b} when it comes to {v}",
        "{b}, where did you learn {v} like that",
        "I watched {b} at {v} and my jaw dropped",
        "{b} should teach {v} to all of us",
        "if you need help with {v}, ask {b}",
        "{b} wins every {v} contest I see",
        "wow, {b} is so good at {v}",
    ),
    "late_day": (
        "we waited for {b} again on {v}, same as ever",
        "{b} never makes it in time on {v}",
        "every {v} the chair of {b} stays empty for an hour",
        "{b}, did your clock break, it is always {v}",
        "I bet {b} misses the start on {v} again",
        "{b} comes late each {v}, I noticed",
    ),
    "fear": (
        "{b} screamed because of {v}, I saw it",
        "{b} ran out of the room because of {v}",
        "never show {b} any {v}, trust me",
        "poor {b} turned white when {v} came up",
        "I had to hold the hand of {b}, {v} again",
        "I think {b} is afraid of {v}",
    ),
    "mood": (
        "{b}, you look {v} these days",
        "is it me or is {b} rather {v}",
        "I find {b} quite {v} this month",
        "{b} sounded {v} on the phone all week",
        "what is up with {b}, so {v}",
        "{b} seems {v} to me",
    ),
    "kit": (
        "{b} pulled out that {v} again",
        "no trip without {b} and the {v}",
        "{b} never leaves home without a {v}",
        "you can tell it is {b} by the {v}",
        "thank you {b} for having a {v} every time",
        "{b} brings a {v} wherever we go",
    ),
}

REPORT_CONTENT: dict[str, str] = {
    "move": "{b} is moving to {v}",
    "language": "{b} is learning {v}",
    "saving": "{b} is saving for a {v}",
    "exam": "{b} has an exam on {v}",
}
REPORT_ADD: dict[str, tuple[str, ...]] = {
    "move": (
        "{b} told me about packing for {v}",
        "{b} found a flat in {v}, I heard it from {b}",
        "{b} whispered that {v} will be home soon",
        "I had lunch with {b}, next stop {v} for good",
        "{b} says the boxes for {v} are ready",
        "{b} told me the move to {v} is on",
    ),
    "language": (
        "{b} told me about evening classes in {v}",
        "{b} says {v} verbs are a nightmare",
        "I heard {b} bought a {v} dictionary",
        "{b} mentioned a {v} tutor to me",
        "{b} answered the phone in {v}, it is the new course",
        "{b} told me that learning {v} is fun",
    ),
    "saving": (
        "{b} told me about a jar of coins for a {v}",
        "{b} says every cent goes towards a {v}",
        "{b} skips lunch to afford a {v}, so I hear",
        "{b} mentioned a {v} and a very thin wallet",
        "by summer {b} wants to buy a {v}, I was told",
        "{b} told me the savings are for a {v}",
    ),
    "exam": (
        "{b} told me about the big test on {v}",
        "{b} says cross your fingers on {v}",
        "{b} cannot come out, there is a test on {v}",
        "{b} mentioned being graded on {v}",
        "I promised {b} not to call before the test on {v}",
        "{b} told me the exam is on {v}",
    ),
}

JOIN_CONTENT = "{a} joined the group later"
JOIN_ADD: tuple[str, ...] = (
    "hi all, thanks for letting me in",
    "hello everyone, I am the new one here",
    "glad you added me, I know half of you already",
    "finally I found the link to this chat, hi",
    "so this is where you all talk, nice to be here",
    "first message from me, please be kind",
)
LEAVE_CONTENT = "{a} left the group"
LEAVE_SELF: tuple[str, ...] = (
    "this is my last message here, take care all",
    "I am out from today, it was a good time",
    "time for me to say goodbye to you all for good",
    "I will not be part of this any more, sorry",
    "thanks for everything, I am signing off for good",
    "you will have to go on without me from now",
)
LEAVE_REPORTED: tuple[str, ...] = (
    "sad news, {b} will not be back with us",
    "{b} said goodbye for good, I am told",
    "{b} is out, we are one fewer from now",
    "we have to go on without {b} from now",
    "{b} quit, I took the name off the list",
    "{b} asked me to say farewell to you all",
)
