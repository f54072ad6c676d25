"""The content of a third set, which is about other things than the sets for tuning and for
held-back figures: people who work in one house, and other projects of a user. Nothing may be tuned
on it."""

from __future__ import annotations

from memservice_bench.assistant_scenes import Project
from memservice_bench.scenes import Scene


def _scene(label: str, ask: str, answers: str, values: str, near: str, own: str, far: str) -> Scene:
    """Alternatives are separated by `|`."""
    return Scene(
        label,
        (ask,),
        tuple(answers.split("|")),
        tuple(values.split("|")),
        (near,),
        (own,),
        (far,),
    )


WORK = (
    _scene(
        "kiosk",
        "Is the kiosk by the gate really closing?",
        "They told me it becomes {v}.|It does. {v} moves in after the summer.",
        "a flower stall|a barber|a ticket office|a bicycle repair|a juice bar",
        "What did {n} say about the kiosk by the gate?",
        "What moves in after the summer, according to {n}?",
        "Which shop does {n} expect at the entrance?",
    ),
    _scene(
        "parcel",
        "Did the parcel for the second floor ever turn up?",
        "Yes, behind the boiler, and inside was {v}.|Opened it this morning: {v}.",
        "a brass lamp|forty labels|a broken scale|a rug|two keyboards",
        "What was in the parcel of {n}?",
        "What did {n} open in the morning?",
        "Which delivery had {n} been waiting for?",
    ),
    _scene(
        "night shift",
        "Who takes the night shift with you this month?",
        "{v}, so I will not fall asleep.|I have {v} beside me until the thirtieth.",
        "Marlow|the new trainee|Ingeborg from stores|Old Petrus|the agency nurse",
        "Who is on the night shift with {n}?",
        "Who is beside {n} until the thirtieth?",
        "With whom does {n} work after dark?",
    ),
    _scene(
        "canteen",
        "Have you tried the canteen since it has a new cook?",
        "Twice. I only go back for {v}.|The rest is grey, but {v} is worth the queue.",
        "the lentil soup|dumplings|the plum cake|fried rice|cold noodles",
        "What does {n} like in the canteen?",
        "What is worth the queue for {n}?",
        "Which dish is {n} fond of at lunch?",
    ),
    _scene(
        "copier",
        "What is wrong with the copier again?",
        "It swallowed {v} and hums.|The man pulled {v} out of the back.",
        "a paper clip|my lease|a hair band|a whole calendar|a train ticket",
        "What is wrong with the copier of {n}?",
        "What was pulled out of the back at {n}'s?",
        "Which object jammed the machine that {n} used?",
    ),
    _scene(
        "inspection",
        "How did the inspection of your workshop end?",
        "Fine, apart from {v}.|They wrote down {v} and left after an hour.",
        "the fire door|a loose rail|two missing stickers|the ladder|the first aid box",
        "How did the inspection of {n}'s workshop end?",
        "What was written down at {n}'s before they left?",
        "Which defect did the auditors find at {n}'s place?",
    ),
    _scene(
        "roof terrace",
        "What are they building up on the roof terrace?",
        "Believe it or not, {v}.|I signed the order myself: {v}.",
        "a beehive|a weather station|a sauna|a stage|three antennas",
        "What is built on the roof terrace, according to {n}?",
        "Which order did {n} sign?",
        "What will stand on top of the building, says {n}?",
    ),
    _scene(
        "farewell",
        "What do we give Mrs Oduya for her farewell?",
        "I collected for {v} already.|My vote is {v}, she hinted at it.",
        "a telescope|hiking poles|a rocking chair|theatre tickets|a bread oven",
        "What should be the farewell present, according to {n}?",
        "For what did {n} collect money?",
        "Which gift would {n} choose for the one who retires?",
    ),
)

PROJECTS = (
    Project(
        "microbrewery",
        (
            *("mash tun", "hop order", "label design", "tap room", "cooling loop"),
            *(
                "yeast lab",
                "bottling line",
                "permit file",
                "spring batch",
                "delivery van",
            ),
        ),
        (
            "a refractometer",
            "BeerSmith",
            "a plate chiller",
            "a label printer",
            "a pallet jack",
        ),
        (
            *(
                "malt",
                "gravity",
                "wort",
                "foam",
                "aroma",
                "keg",
                "filter",
                "pressure",
                "boil",
            ),
            *("sugar", "grain", "tank"),
        ),
    ),
    Project(
        "escape game",
        (
            *(
                "first riddle",
                "secret door",
                "sound system",
                "hint cards",
                "clock tower",
            ),
            *(
                "costume rack",
                "booking page",
                "safety sheet",
                "final scene",
                "test group",
            ),
        ),
        ("an Arduino", "magnet locks", "a fog machine", "Figma", "a label maker"),
        (
            *(
                "clue",
                "lock",
                "lamp",
                "timer",
                "player",
                "puzzle",
                "wall",
                "key",
                "signal",
            ),
            *("plot", "mirror", "prop"),
        ),
    ),
)
