"""Facts of the generated conversations that change, or that a speaker denies later."""

from __future__ import annotations

UPDATES = (
    (
        "commute",
        "How do you get to the office these days?",
        "By {v}, it is quicker.",
        "By {v} now, I gave up the other thing.",
        "tram|bicycle|ferry|car|train|scooter",
        "How does {n} get to the office?",
    ),
    (
        "gym",
        "What are you doing for exercise?",
        "{v}, three times a week.",
        "I dropped that. {v} it is, since my back.",
        "Boxing|Swimming|Yoga|Climbing|Rowing|Fencing",
        "What does {n} do for exercise?",
    ),
    (
        "diet",
        "Are you eating meat at the moment?",
        "{v}, on the advice of a friend.",
        "Not any more: {v} from this week.",
        "Only fish|No, fully vegan|Chicken on Sundays|Everything again|Vegetarian at home",
        "Does {n} eat meat?",
    ),
    (
        "phone",
        "Which phone are you on?",
        "A {v}, second hand.",
        "The old one drowned, so a {v}.",
        "flip phone|Fairphone|tablet, really|satellite phone|borrowed one from work",
        "Which phone does {n} have?",
    ),
    (
        "flatmate",
        "Who lives with you at the moment?",
        "{v}, and it works fine.",
        "That ended. {v} moved in on Monday.",
        "My nephew|A nurse from Spain|Two students|Nobody|My old teacher|A jazz singer",
        "Who lives with {n}?",
    ),
    (
        "savings",
        "What are you saving up for?",
        "{v}, a little every month.",
        "Changed my mind. {v} instead.",
        "A boat|New teeth|A greenhouse|A pilot licence|A piano|A roof",
        "What is {n} saving up for?",
    ),
)
"""(label, ask, first answer, later answer, values, question): the later answer replaces the
first."""

CONTRADICTIONS = (
    (
        "horror films",
        "Do you like horror films?",
        "Love them, the bloodier the better.",
        "Can't stand them, I hide behind the sofa.",
        "Does {n} like horror films?",
    ),
    (
        "skiing",
        "Ever tried skiing?",
        "Never in my life.",
        "Every winter since school.",
        "Has {n} tried skiing?",
    ),
    (
        "smoking",
        "Do you smoke?",
        "No, never touched it.",
        "A pack a day, sadly.",
        "Does {n} smoke?",
    ),
    (
        "twin",
        "Do you have siblings?",
        "Only child, spoiled rotten.",
        "Three brothers, all louder than me.",
        "Does {n} have siblings?",
    ),
    (
        "driving",
        "Can you drive?",
        "No licence, no plan to.",
        "I drove lorries for years.",
        "Can {n} drive?",
    ),
)
