"""The content of the generated conversations.

A scene is a small exchange about one topic in a person's life. `asks` are questions of the other
person, `answers` contain the fact ({v}) in other words. Questions about the scene have three kinds:
`near` shares words with `asks` only, `own` with `answers`, `far` with neither. `label` names the
topic for questions about several scenes; `short` is a follow-up question with an answer of a few
words.
"""

from __future__ import annotations

from msgspec import Struct


class Scene(Struct, frozen=True):
    label: str
    asks: tuple[str, ...]
    answers: tuple[str, ...]
    values: tuple[str, ...]
    near: tuple[str, ...]
    own: tuple[str, ...] = ()
    far: tuple[str, ...] = ()
    short: tuple[str, tuple[str, ...], str] | None = None
    """(follow-up, its possible answers, question about it)"""


def _scene(
    label: str,
    asks: str,
    answers: str,
    values: str,
    near: str,
    own: str = "",
    far: str = "",
    short: str = "",
) -> Scene:
    """Alternatives are separated by `|`. `short` is follow-up | answers, separated by `/` |
    question."""

    def split(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split("|") if part.strip())

    parts = split(short)
    follow = (parts[0], tuple(p.strip() for p in parts[1].split("/")), parts[2]) if parts else None
    return Scene(
        label,
        split(asks),
        split(answers),
        split(values),
        split(near),
        split(own),
        split(far),
        follow,
    )


ENGLISH = (
    _scene(
        "pottery class",
        "How is the pottery class going?|Are you still taking that pottery class on Thursdays?",
        "Slowly! I finished {v} on Saturday.|Lovely, {v} came out of the kiln without a crack.",
        (
            "a blue bowl|a teapot|two mugs|a lopsided vase|a fruit plate|a candle holder|a "
            "soap dish|a flower pot"
        ),
        "What did {n} make in pottery class?|What came of {n}'s pottery class?",
        "What did {n} take out of the kiln?",
        "What has {n} created out of clay?",
        (
            "Do you throw on the wheel there?|Yeah, twice!/Only once so far./Every week "
            "now.|How often did {n} use the pottery class wheel?"
        ),
    ),
    _scene(
        "puppy",
        "Did you settle on a name for the puppy?|So what is the puppy called in the end?",
        "{v}! The kids voted.|We went with {v}, after a long debate.",
        "Biscuit|Pixel|Waffles|Comet|Mochi|Pickle|Juniper|Bandit|Noodle|Tofu",
        "What is the name of {n}'s puppy?|What did {n} call the puppy?",
        "What did the kids vote for at {n}'s place?",
        "What is {n}'s dog called?",
        (
            "How old is she now?|Ten weeks./Almost four months./Just turned one.|How old is "
            "{n}'s puppy?"
        ),
    ),
    _scene(
        "long weekend",
        "Where are you off to for the long weekend?|Did you book something for the long weekend?",
        "{v}, finally. The tickets were a bargain.|We chose {v} because my cousin lives there.",
        "Lisbon|Oslo|Kraków|Porto|Edinburgh|Ghent|Ljubljana|Valencia|Tallinn|Bergen|Bologna|Riga",
        "Where did {n} go for the long weekend?|What did {n} book for the long weekend?",
        "Which city does {n}'s cousin live in?",
        "What was the destination of {n}'s short holiday?",
        (
            "Have you been there before?|Yeah, twice!/Never./Once, as a child.|Has {n} been to "
            "the long weekend place before?"
        ),
    ),
    _scene(
        "interview",
        "How did the interview turn out?|Any news about the interview?",
        "I got it! I start as {v} in two weeks.|They called this morning: {v}, from next month.",
        (
            "a lab technician|a park ranger|a copy editor|a pastry chef|a data analyst|a "
            "school librarian|a sound engineer|a midwife"
        ),
        "What came of {n}'s interview?|Which position did {n} interview for?",
        "What does {n} start as?",
        "What does {n} do for a living?",
        (
            "Is it far to commute?|Ten minutes by bike./About an hour./I can walk.|How long is "
            "{n}'s commute after the interview?"
        ),
    ),
    _scene(
        "instrument",
        (
            "What made you pick up an instrument again?|Are you really learning an instrument "
            "at our age?"
        ),
        (
            "My grandfather left me {v}, so I had no excuse.|I found {v} at a flea market and "
            "fell for it."
        ),
        (
            "a clarinet|an accordion|a cello|a ukulele|a banjo|a violin|a trumpet|a "
            "harmonica|a mandolin"
        ),
        "Which instrument is {n} learning?|What instrument did {n} pick up?",
        "What did {n}'s grandfather leave behind?",
        "What does {n} play in the evenings?",
        (
            "Do the neighbours mind?|Not yet!/They knock on the wall./They joined in, "
            "actually.|Do neighbours mind {n}'s instrument?"
        ),
    ),
    _scene(
        "balcony",
        "What are you growing on the balcony this year?|Anything coming up on the balcony?",
        "Mostly {v}, the rest drowned in the rain.|{v}, and far too much of it.",
        (
            "cherry tomatoes|chillies|sweet peas|basil|strawberries|radishes|sunflowers|runner "
            "beans|mint"
        ),
        "What is {n} growing on the balcony?|What came up on {n}'s balcony?",
        "What survived the rain at {n}'s?",
        "Which plants does {n} keep?",
    ),
    _scene(
        "rash",
        "What did the doctor say about the rash?|Is the rash any better?",
        "It is {v}, of all things. I have to avoid it.|Turns out I cannot have {v} any more.",
        "shellfish|hazelnuts|kiwi|penicillin|celery|soy|latex|sesame|mustard",
        "What caused {n}'s rash?|What did the doctor say about {n}'s rash?",
        "What does {n} have to avoid?",
        "What is {n} allergic to?",
    ),
    _scene(
        "garage",
        "Did the garage manage to fix it?|What did the garage find?",
        "The {v} was gone. Cost me a fortune.|They replaced the {v} and it purrs again.",
        "gearbox|alternator|clutch|exhaust|water pump|starter motor|handbrake|radiator",
        "What did the garage fix for {n}?|What did the garage find at {n}'s?",
        "What was replaced at a fortune for {n}?",
        "What was broken in {n}'s car?",
        (
            "How long did they keep it?|Four days./A whole week./One afternoon.|How long did "
            "the garage keep {n}'s car?"
        ),
    ),
    _scene(
        "book club",
        "What is the book club reading now?|Which title did the book club pick?",
        "Something about {v}. I could not put it down.|A thick one on {v}, I am on page ninety.",
        (
            "lighthouse keepers|beekeeping|Antarctic explorers|codebreakers|a travelling "
            "circus|salt smugglers|map makers|deep sea divers"
        ),
        "What is {n}'s book club reading?|What did {n}'s book club pick?",
        "What is the thick one that {n} could not put down about?",
        "Which novel is {n} in the middle of?",
    ),
    _scene(
        "race",
        "How did the race go?|Did you finish the race?",
        "{v}! My knees are killing me.|I crossed the line in {v}, better than I feared.",
        (
            "four hours ten|just under two hours|fifty-one minutes|three fifty-eight|five "
            "hours flat|an hour and a half"
        ),
        "How did {n}'s race go?|How fast did {n} finish the race?",
        "In what did {n} cross the line?",
        "What was {n}'s running time?",
        (
            "Are you signing up again?|Never again!/Already did./Ask me in a month.|Does {n} "
            "plan to do the race again?"
        ),
    ),
    _scene(
        "sister",
        "How is your sister doing out there?|Any word from your sister?",
        "She moved to {v} with the twins.|She opened a bakery in {v}, imagine that.",
        "Halifax|Cork|Perth|Nairobi|Montevideo|Wellington|Bristol|Malmö|Trieste|Quito",
        "Where is {n}'s sister?|What is the word from {n}'s sister?",
        "Where was the bakery of {n}'s family opened?",
        "In which town does {n}'s sibling live?",
    ),
    _scene(
        "kitchen",
        "Which colour did you go for in the kitchen?|Is the kitchen painted yet?",
        "{v}. It looked braver on the card.|We ended up with {v} and two coats.",
        "olive green|mustard yellow|terracotta|navy blue|pale pink|charcoal|turquoise|cream",
        "Which colour is {n}'s kitchen?|How did {n} paint the kitchen?",
        "What did {n} need two coats of?",
        "What shade are {n}'s walls where the cooking happens?",
    ),
    _scene(
        "campsite",
        "How was the campsite?|Did you sleep at all at the campsite?",
        "A {v} got into our tent. Unforgettable.|We woke up because of a {v} next to the stove.",
        "raccoon|hedgehog|fox|badger|goat|squirrel|peacock|wild pony",
        "What happened to {n} at the campsite?|Who visited {n} at the campsite?",
        "What got into {n}'s tent?",
        "Which animal disturbed {n} outdoors?",
    ),
    _scene(
        "volunteering",
        "Are you still volunteering on Sundays?|How is the volunteering?",
        "Yes, I {v} there now.|More than ever. These days I {v}.",
        (
            "sort donations|walk the dogs|read to children|cook soup|drive the van|teach "
            "chess|mend bicycles|answer the phone"
        ),
        "What does {n} do when volunteering?|How does {n} spend Sundays volunteering?",
        "",
        "In what way does {n} help the charity?",
        (
            "How many of you are there?|Six./About a dozen./Just me and an old man.|How many "
            "people are with {n} when volunteering?"
        ),
    ),
    _scene(
        "film at the cinema",
        "Was the film worth it?|You went to the cinema after all?",
        "The part with the {v} made me cry.|Apart from the {v} I nearly slept.",
        (
            "drowning piano|burning orchard|lost balloon|two brothers|train in the snow|last "
            "letter|blind captain"
        ),
        "What did {n} say about the film?|What did {n} think at the cinema?",
        "Which part made {n} cry?",
        "Which scene moved {n}?",
    ),
    _scene(
        "search",
        "Did it ever turn up?|Still searching?",
        (
            "My {v} was behind the washing machine all along.|The {v} had slipped into the "
            "lining of my coat."
        ),
        "passport|wedding ring|spare key|hearing aid|bank card|fountain pen|locket|camera",
        "What turned up at {n}'s in the end?|How did {n}'s search end?",
        "What was behind the washing machine at {n}'s?",
        "What had {n} mislaid?",
    ),
    _scene(
        "evening course",
        "How is the evening course?|Did you sign up for the evening course?",
        "We are at {v} already, my head spins.|Next lesson is {v}. I bought three notebooks.",
        (
            "bookkeeping|sign language|Portuguese verbs|watercolours|first "
            "aid|welding|calligraphy|beginner's Arabic"
        ),
        "What does {n} learn in the evening course?|Which evening course did {n} sign up for?",
        "What did {n} buy three notebooks for?",
        "Which new skill is {n} studying?",
        (
            "Who is your teacher?|A retired sailor./My old neighbour./A very strict nun.|Who "
            "teaches {n}'s evening course?"
        ),
    ),
    _scene(
        "mother's present",
        "What did you end up giving your mother?|Did your mother like it?",
        "{v}. She hugged me for a minute.|She unwrapped {v} and went quiet.",
        (
            "a rocking chair|an old map|opera tickets|a rose bush|a photo album|a silver "
            "brooch|a weekend at the sea|a telescope"
        ),
        "What did {n} give to mother?|What did {n}'s mother like?",
        "What was unwrapped at {n}'s?",
        "What was the gift of {n}'s choosing?",
    ),
    _scene(
        "coffee",
        "Still off coffee?|What do you drink instead of coffee?",
        "Only {v} now, I sleep like a stone.|{v} in the morning, nothing after noon.",
        "barley tea|hot lemon|rooibos|chicory|cocoa|ginger water|peppermint tea|oat milk",
        "What does {n} drink instead of coffee?|What does {n} have since giving up coffee?",
        "What lets {n} sleep like a stone?",
        "Which beverage does {n} prefer?",
    ),
    _scene(
        "tower",
        "Why did you not come up the tower with us?|Were you all right up on the tower?",
        "It is {v}, I freeze completely.|I have had trouble with {v} since I was six.",
        "heights|lifts|crowds|pigeons|narrow stairs|echoes|bells|wind",
        "Why did {n} not come up the tower?|What was wrong with {n} on the tower?",
        "What makes {n} freeze?",
        "What is {n} afraid of?",
    ),
    _scene(
        "boxes",
        "What is in all those boxes?|Did you unpack the boxes?",
        "{v}! About four hundred, from thirty countries.|Just my {v}. Do not tell anyone.",
        (
            "matchboxes|postage stamps|fossils|sugar packets|old keys|vinyl records|bus "
            "tickets|sea shells|chess sets"
        ),
        "What is in {n}'s boxes?|What did {n} unpack from the boxes?",
        "What has {n} got from thirty countries?",
        "What does {n} collect?",
    ),
    _scene(
        "wedding",
        "So who is doing the music at the wedding?|How are the wedding plans?",
        "A {v}, my uncle knows them.|We hired a {v}. Everyone will dance.",
        (
            "brass band|string quartet|gospel choir|swing trio|bagpiper|mariachi group|one-man "
            "orchestra"
        ),
        "Who plays at {n}'s wedding?|What are the music plans for {n}'s wedding?",
        "Whom does {n}'s uncle know?",
        "Which entertainment was chosen for {n}'s marriage?",
        (
            "How many guests?|Eighty./Just family./Far too many.|How many guests come to {n}'s "
            "wedding?"
        ),
    ),
    _scene(
        "launch",
        "Is the big launch still on?|How is the launch looking?",
        "Pushed back to {v}, legal found something.|{v}, if the translators deliver.",
        (
            "March|the autumn|next Tuesday|the end of June|after Easter|the second "
            "quarter|early December"
        ),
        "When is {n}'s launch?|Why is the launch of {n} late?",
        "When do the translators of {n} deliver?",
        "What is the deadline of {n}'s team?",
    ),
    _scene(
        "nights awake",
        "You look tired, what keeps you awake?|Awake all night again?",
        "The {v} upstairs, from two until five.|It is the {v}. I bought ear plugs.",
        "drummer|washing machine|baby|treadmill|parrot|boiler|poker round|dishwasher",
        "What keeps {n} awake?|Why is {n} awake all night?",
        "What did {n} buy ear plugs against?",
        "What disturbs {n}'s sleep?",
    ),
    _scene(
        "dinner for the guests",
        "What are you cooking for the guests?|Is dinner for the guests sorted?",
        "{v}, it is the one thing that never fails.|My aunt's {v}. Wish me luck.",
        (
            "mushroom risotto|lamb stew|dumplings|paella|lentil curry|onion tart|stuffed "
            "peppers|goulash|ramen"
        ),
        "What did {n} cook for the guests?|What was {n}'s dinner for the guests?",
        "Which recipe is from {n}'s aunt?",
        "What is {n}'s signature dish?",
    ),
    _scene(
        "flat",
        "Did you get the flat?|Which flat did you take?",
        "The one above the {v}. It smells wonderful.|We signed! It is next to the {v}.",
        (
            "bakery|bicycle shop|flower market|fire station|old mill|swimming pool|tram "
            "depot|violin maker"
        ),
        "Which flat did {n} get?|Where is {n}'s flat?",
        "What did {n} sign for that smells wonderful?",
        "What is below {n}'s home?",
        (
            "When do you move in?|On the first./As soon as the lift works./Already in!|When "
            "does {n} move into the flat?"
        ),
    ),
)

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
