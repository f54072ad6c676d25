"""What the invented conversations between a user and an assistant are about.

A project has parts, about which the user states facts, and words for the prose around them. A
fact's statements hold its value ({v}); its questions use other words where they can. The last
projects are held back: nothing may be tuned on them.
"""

from __future__ import annotations

from msgspec import Struct


class Project(Struct, frozen=True):
    name: str
    parts: tuple[str, ...]
    tools: tuple[str, ...]
    words: tuple[str, ...]
    """Nouns for prose and code."""


def _project(name: str, parts: str, tools: str, words: str) -> Project:
    """Alternatives are parted by `|`."""
    return Project(name, *(tuple(text.split("|")) for text in (parts, tools, words)))


PROJECTS = (
    _project(
        "expense tracker",
        "login form|transaction table|monthly chart|receipt upload|currency converter|"
        "category filter|export button|reminder mail|search box|dark theme",
        "Flask|SQLAlchemy|Chart.js|Celery|Bootstrap|Jinja",
        "request|session|column|query|cache|handler|schema|response|validation|token|route|test",
    ),
    _project(
        "vegetable garden",
        "raised bed|tomato frame|compost bin|rain barrel|herb corner|potting shed|"
        "bean trellis|seed tray|gravel path|cold frame",
        "a soaker hose|a pH kit|a broad fork|shade cloth|a soil thermometer|a hand cultivator",
        "soil|seedling|mulch|drainage|root|shade|harvest|frost|watering|nutrient|spacing|season",
    ),
    _project(
        "half marathon",
        "long run|interval session|hill repeats|recovery week|warm-up routine|race outfit|"
        "fuelling plan|stretching block|pacing chart|strength day",
        "a foam roller|a chest strap|a running watch|a treadmill|trail shoes|a metronome app",
        "pace|heart rate|cadence|distance|fatigue|breathing|knee|mileage|effort|rest|sleep|tempo",
    ),
    _project(
        "family history book",
        "opening chapter|emigration story|photo appendix|family tree|letter collection|"
        "cover design|recipe section|interview with grandmother|village map|index of names",
        "Scrivener|Gramps|LaTeX|InDesign|a flatbed scanner|a voice recorder",
        "archive|ancestor|caption|source|paragraph|narrator|quotation|layout|timeline|parish|draft|"
        "voice",
    ),
    _project(
        "statistics course",
        "probability homework|regression report|sampling quiz|Bayes exercise|group presentation|"
        "final paper|practice exam|reading list|variance proof|lab notebook",
        "R Studio|Jupyter|Stata|Anki|GeoGebra|a graphing calculator",
        "variable|distribution|sample|hypothesis|residual|estimate|interval|outcome|theorem|mean|"
        "model|error",
    ),
    _project(
        "kitchen renovation",
        "worktop|sink unit|corner cabinet|tiled splashback|ceiling lights|extractor hood|"
        "floor boards|pantry shelves|window seat|wall sockets",
        "a laser level|a tile cutter|SketchUp|a jigsaw|a moisture meter|a cordless drill",
        "measurement|plumber|joint|grout|permit|wiring|paint|delivery|hinge|plaster|drawer|quote",
    ),
    # Held back:
    _project(
        "podcast series",
        "pilot episode|guest interview|intro jingle|show notes|trailer|sponsor message|"
        "listener survey|transcript page|launch party|feed setup",
        "Audacity|a condenser microphone|Descript|Hindenburg|a pop filter|a field recorder",
        "audience|recording|volume|noise|script|chapter|platform|editing|host|question|silence|"
        "season",
    ),
    _project(
        "warehouse robot",
        "gripper arm|obstacle sensor|charging dock|route planner|battery pack|safety stop|"
        "barcode camera|wheel controller|status display|simulation world",
        "ROS|OpenCV|Gazebo|an oscilloscope|KiCad|a soldering station",
        "motor|signal|voltage|firmware|latency|calibration|frame|threshold|packet|torque|logger|"
        "sensor",
    ),
    _project(
        "walking trip",
        "coastal stage|mountain hut booking|ferry crossing|luggage transfer|packing list|"
        "rest day|train connection|emergency contact sheet|lunch stops|border crossing",
        "a paper map|Komoot|a satellite beacon|trekking poles|a water filter|a head torch",
        "weather|altitude|blister|daylight|timetable|reservation|terrain|backpack|guidebook|ridge|"
        "valley|ticket",
    ),
    _project(
        "choir concert",
        "opening motet|seating plan|programme leaflet|solo audition|rehearsal weekend|"
        "ticket sale|stage lighting|encore|accompanist contract|charity collection",
        "MuseScore|a tuning fork|Eventbrite|a piano reduction|a recording desk|Canva",
        "soprano|rhythm|score|acoustics|conductor|phrase|intonation|entrance|audience|warm-up|hall|"
        "dynamics",
    ),
)
HELD_BACK = 6
"""Index of the first project that is held back."""


class FactKind(Struct, frozen=True):
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    values: tuple[str, ...]
    """Empty: days, or the project's tools."""
    correction: str = ""


def _kind(statements: str, questions: str, values: str = "", correction: str = "") -> FactKind:
    return FactKind(
        tuple(statements.split("|")),
        tuple(questions.split("|")),
        tuple(values.split("|")) if values else (),
        correction,
    )


FACT_KINDS = {
    "deadline": _kind(
        "I have to finish the {p} by {v}.|The {p} must be ready on {v}, no later.",
        "When is my {p} due?|What is the deadline for the {p}?",
        correction="Small correction: the {p} has moved, it now has to be done by {v}.",
    ),
    "money": _kind(
        "I set aside {v} for the {p}.|For the {p} I can spend {v} at most.",
        "What is my budget for the {p}?|How much money did I reserve for the {p}?",
        "$80|$140|$215|$330|$475|$620|$950|$1,300",
        "I had to change the numbers: I now allow {v} for the {p}.",
    ),
    "tool": _kind(
        "I settled on {v} for the {p}.|For the {p} I went with {v}, and it feels right so far.",
        "Which tool did I choose for the {p}?|What am I using on the {p}?",
        correction="I gave up on the earlier choice and switched the {p} over to {v}.",
    ),
    "helper": _kind(
        "{v} offered to help me with the {p}.|I will do the {p} together with {v}.",
        "Who is helping me with the {p}?|Whose help did I get for the {p}?",
        "my cousin Bertil|my neighbour Oona|my colleague Priyanka|my friend Dmitri|my aunt Rosa|"
        "my flatmate Kwame|my old teacher Ms Lindqvist|my brother Aurel",
    ),
    "duration": _kind(
        "The {p} took me {v} last time, which is too much.|"
        "I measured it: the {p} currently costs {v}.",
        "How long did the {p} take me?|How much time does my {p} need at the moment?",
        "35 minutes|50 minutes|two hours|three and a half hours|a whole day|95 minutes|six hours",
        "News: I got the {p} down to {v}.",
    ),
    "trouble": _kind(
        "The {p} went wrong yesterday because of {v}.|I lost an evening on the {p}: {v}.",
        "Why did I have trouble with the {p}?|What went wrong with my {p}?",
        "a missing screw|an expired key|a wrong unit|a spilled coffee|a power cut|an old manual|"
        "a typo in one line|a double booking",
    ),
    "where": _kind(
        "I work on the {p} at {v}, since it is quiet there.|These days I do the {p} at {v}.",
        "Where do I work on the {p}?|At which place do I take care of the {p}?",
        "the town library|my parents' attic|the corner café|a co-working loft|the school gym|"
        "the community centre|my balcony",
    ),
    "origin": _kind(
        "I got the idea for the {p} from {v}.|It was {v} that made me start with the {p}.",
        "Where did I get the idea for the {p}?|What inspired my {p}?",
        "a museum visit|an evening lecture|a magazine from 1987|a talk by a beekeeper|"
        "a radio feature|my sister's holiday|a street festival",
    ),
}
CHANGING = ("deadline", "money", "tool", "duration")
"""Kinds of fact that have a correction."""

REQUESTS = (
    "Can you give me a plan for the next steps?",
    "What should I look out for?",
    "Could you write that up as a checklist?",
    "How would you improve it?",
    "Please explain the options in detail.",
    "Could you review what I have so far?",
    "What would an expert do here?",
    "Can you compare the usual ways to do this?",
)
OPENINGS = (
    "I'm working on my {n} again, this time on the {p}.",
    "Back to the {n}: the {p} is what I care about today.",
    "So about the {p} for my {n}.",
    "I spent the morning on the {p}.",
    "Another question on the {n}, about the {p}.",
)
ASIDES = (
    "I also looked at the {p} for a moment but left it as it was.",
    "My {w} is fine, I think, though the {w2} still confuses me.",
    "I read three articles on {w} and every one of them says something different.",
    "The {w} matters most to me, and after that the {w2}.",
    "Before that I only ever dealt with the {w} of the {p}.",
    "I do not want to spend the whole weekend on {w} and {w2}.",
)
QUOTATIONS = (
    '> "Good {w} is invisible. You notice the {w2} only when it fails."\n> from a book I own',
    "> On the {w}: see page {k}. On the {w2}: see page {k2}.\n> (printed on the leaflet)",
)

INTRODUCTIONS = (
    "That's a good question about the {p}. Here is how I would approach it.",
    "Great progress on the {n}! Let's go through the {p} step by step.",
    "Happy to help with the {p}. The key is to balance {w} and {w2}.",
    "Thanks for the details on the {p}. Below is a structured answer.",
)
ADVICE = (
    "Start with the {w} of the {p}, because the {w2} depends on it.",
    "Check the {w} twice before you go on to the {w2}.",
    "If the {w} is unclear, write down what the {p} should do and compare.",
    "Many people underestimate the {w}; plan some time and money for it.",
    "Keep the {p} simple at first and improve the {w} later.",
    "Ask someone who helped with a {p} before which {w} they would choose.",
    "Set a date by which the {w} has to be ready, and a budget for the {w2}.",
    "When something goes wrong with the {p}, the {w} is usually the reason.",
    "A common tool for the {p} is {t}, but the {w2} limits what it can do.",
    "Use {t} only if the {w} needs it; otherwise it takes too long.",
    "Remember that the {p} and the {q} share the same {w}.",
    "Finish the {q} before you change the {p}, or the {w2} will suffer.",
)
HEADINGS = ("Overview", "Steps", "What to avoid", "Options", "Next steps", "Details", "Example")
CLOSINGS = (
    "Let me know how the {p} turns out!",
    "Would you like me to go deeper into the {w} or the {w2}?",
    "Tell me more about the {p} and I can adapt this plan.",
)
PICKS = (
    "My recommendation for the {p} is {v}, everything considered.",
    "Of all options for the {p} I would pick {v}.",
)
PICK_QUESTIONS = (
    "What did you recommend for the {p}?",
    "Which option for the {p} was your pick?",
)
PICK_VALUES = (
    "the two-layer variant",
    "a weekly review on Sundays",
    "the smaller version first",
    "doing it in the reverse order",
    "the method with the coloured cards",
    "a trial with five people",
    "the second-hand route",
)

INSTRUCTIONS = (
    (
        "Whenever you show me code, always add a comment on every line.",
        "Show me a code snippet for the {p}.",
    ),
    (
        "Always give costs in euros as well when money comes up.",
        "What could a decent {p} cost me?",
    ),
    (
        "From now on, put the shortest version of each answer at the top.",
        "Give me an answer about the {p} for the {n}.",
    ),
    (
        "Please always name the risks when you suggest a plan.",
        "Suggest a plan for finishing the {p}.",
    ),
    (
        "Never use tables in your replies, lists are fine.",
        "Reply with a comparison of two ways to do the {p}.",
    ),
    (
        "Always mention how long each step takes when you list steps.",
        "List the steps for the {p}.",
    ),
)
PREFERENCES = (
    (
        "I prefer short sessions in the early morning to long evenings.",
        "When would you schedule my sessions for the {n}?",
    ),
    (
        "I like learning from videos far more than from books.",
        "Which learning material on {w} would I like?",
    ),
    (
        "I would rather repair old things than buy new ones.",
        "Should I buy a new {p} or repair the old one?",
    ),
    (
        "I prefer working alone, groups make me nervous.",
        "Would working in a group on the {n} suit me?",
    ),
    (
        "I always choose the quieter option, noise tires me.",
        "Which option for the {p} would I choose, the quiet or the cheap one?",
    ),
)
CONTRADICTIONS = (
    (
        "I have never touched {v} in my life.",
        "Since I have been using {v} for two years now, you can skip the basics.",
        "Do I have experience with {v}?",
    ),
    (
        "Nobody has seen the {p} yet, I keep it to myself.",
        "The feedback that I got on the {p} from five friends was kind.",
        "Have I shown the {p} to anybody?",
    ),
    (
        "I decided not to spend anything on {w} this year.",
        "I already paid for {w} twice since spring.",
        "Did I spend money on {w}?",
    ),
)
