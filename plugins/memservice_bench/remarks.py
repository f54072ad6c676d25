"""Lines of the generated conversations that state no fact. `{p}` is the other person, `{l}` the
label of a scene."""

from __future__ import annotations

REACTIONS = (
    "Ha, I can picture that!",
    "That is so you, {p}.",
    "No way! Tell me everything.",
    "Good for you.",
    "Oh dear. And now?",
    "I would have done the same.",
    "Lucky you, {p}!",
    "Honestly? I am a bit jealous.",
    "Send me a picture when you can.",
)

SMALL_TALK = (
    ("Did you see the rain last night?", "It flooded the whole street."),
    ("I am so tired today.", "Same here, {p}. Mondays."),
    ("We should meet more often.", "Yes! Let us find a date."),
    ("My train was late again.", "Mine too, forty minutes."),
    ("I keep thinking about the old days.", "Me too, {p}. The school, the river, all of it."),
    ("Have you eaten?", "A sandwich on the way."),
    ("Work is mad at the moment.", "When is it not?"),
    ("I cleaned the windows at last.", "Come and do mine."),
    ("Guess who I ran into?", "Not the neighbour again!"),
    ("The heating broke down.", "In this cold? Poor you."),
    ("How was your weekend?", "Quiet. I did nothing at all."),
    ("I bought new shoes.", "Again, {p}?"),
    ("My phone is dying, wait.", "No hurry."),
    ("What a week.", "Tell me about it."),
)

ECHOES = ("The {l}? ", "Oh, the {l}. ", "Right, the {l}! ", "About the {l}: ")
"""Before an answer that takes up the words of what was asked."""

MENTIONS = (
    "I was thinking of your {l} yesterday, {p}.",
    "Someone at the office would not stop about a {l}.",
    "Funny, my brother mentioned a {l} too.",
    "{p}, remind me to ask you about the {l} some time.",
    "There was a documentary about this, {l} and all.",
)
"""Lines that hold a scene's words and no fact: what a search for words alone stumbles over."""
