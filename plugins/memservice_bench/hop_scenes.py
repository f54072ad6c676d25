"""Content of questions that no single message answers.

A chain is two statements with one person in common, and a question that names only the other end:
`multi-hop`. A trait is two or three statements that share no word with the question; general
knowledge connects them: `open-domain`. Each also has what a model may conclude from them. The
second half of each table is held back: nothing may be tuned on it.
"""

from __future__ import annotations

from msgspec import Struct


class Chain(Struct, frozen=True):
    """Slots: {n} is the speaker, {c} the person in common, {v} a value of the second statement."""

    first: tuple[str, str]
    """What is asked, and the answer. An assistant is told the answer only."""
    second: tuple[str, str]
    values: tuple[str, ...]
    question: str
    conclusions: tuple[str, str]
    deduction: str


class Trait(Struct, frozen=True):
    statements: tuple[tuple[str, str], ...]
    """What is asked, and the answer."""
    questions: tuple[str, str]
    """The first one shares a word with the induction, the second one none."""
    conclusions: tuple[str, ...]
    induction: str


def _chain(
    first: str, second: str, values: str, question: str, conclusions: str, deduction: str
) -> Chain:
    """Parts are separated by `|`."""
    (ask, answer), (other_ask, other_answer) = first.split("|"), second.split("|")
    one, two = conclusions.split("|")
    return Chain(
        (ask, answer),
        (other_ask, other_answer),
        tuple(values.split("|")),
        question,
        (one, two),
        deduction,
    )


def _trait(statements: str, questions: str, conclusions: str, induction: str) -> Trait:
    """Parts are separated by `|`, a question from its answer by `/`."""
    near, far = questions.split("|")
    pairs = [statement.split("/") for statement in statements.split("|")]
    return Trait(
        tuple((ask, answer) for ask, answer in pairs),
        (near, far),
        tuple(conclusions.split("|")),
        induction,
    )


CHAINS = (
    _chain(
        "Who do you go up the wall with?|{c}, always. Nobody else holds the rope like that.",
        "Any news from {c}?|Flat out. {c} runs {v} by the harbour now.",
        "a bakery|a bike shop|a print studio|a tea room",
        "What does {n}'s climbing partner do for a living?",
        "{n} goes climbing with {c}.|{c}, a friend of {n}, runs {v}.",
        "{n}'s climbing partner {c} runs {v} for a living.",
    ),
    _chain(
        "Who looks after the kids on Fridays?|{c} picks them up and stays until six.",
        "Is {c} still around in summer?|No, {c} goes back to {v} for two months.",
        "Galicia|Sardinia|Lapland|Zeeland",
        "Where is the babysitter of {n}'s children in summer?",
        "{c} looks after {n}'s children on Fridays.|{c} spends the summer in {v}.",
        "The babysitter of {n}'s children, {c}, spends the summer in {v}.",
    ),
    _chain(
        "Where did the old piano come from?|It was a present of {c}, who had no room for it.",
        "How is {c} these days?|Better. {c} got {v} and walks without a stick.",
        "a new hip|new knees|other shoes from a doctor|a dog",
        "How is the health of the person who gave {n} the piano?",
        "{c} gave {n} a piano.|{c} got {v} and walks without a stick again.",
        "The health of {c}, who gave {n} the piano, is better: {c} got {v}.",
    ),
    _chain(
        "Who is your boss after the merger?|{c}, from the other house.",
        "You said {c} is picky?|Terribly. Give {c} {v} and the day is saved.",
        "a list of three points|a drawing|plain numbers|a short phone call",
        "How should {n} present an idea to the manager?",
        "{n}'s boss is {c}.|{c} likes to be given {v}.",
        "{n}'s manager {c} likes ideas to be presented as {v}.",
    ),
    _chain(
        "Whose van did you borrow for the move?|{c} lent me hers without a question.",
        "When do we celebrate {c}?|On {v}, with a cake this time.",
        "the third of May|New Year's Eve|midsummer|the first of October",
        "When is the birthday of the person whose vehicle {n} used?",
        "{c} lent {n} a van for the move.|{c} is celebrated on {v}.",
        "The birthday of {c}, who lent {n} a vehicle, is on {v}.",
    ),
    _chain(
        "Who taught you to mend nets?|{c}, when I was nine.",
        "Does {c} still live up there?|No, {c} moved into {v} last year.",
        "a houseboat|a home by the park|the old mill|her sister's place",
        "Where does the one who taught {n} a craft live now?",
        "{c} taught {n} to mend nets.|{c} moved into {v} last year.",
        "{c}, who taught {n} the craft of mending nets, lives in {v} now.",
    ),
    _chain(
        "Who do you share the allotment with?|With {c}, half and half.",
        "Can {c} eat all that?|Hardly. {c} gets a rash from {v}.",
        "strawberries|tomatoes|celery|beans",
        "Which food should not be cooked for {n}'s garden partner?",
        "{n} shares an allotment with {c}.|{c} gets a rash from {v}.",
        "{n}'s garden partner {c} cannot eat food with {v}.",
    ),
    _chain(
        "Who sits next to you in the choir?|{c}, two metres tall and never flat.",
        "Did {c} get there in time?|Of course, {c} drives {v} for the city.",
        "a night bus|a tram|a snow plough|an ambulance",
        "Which job has the person that {n} sings beside?",
        "{n} sits next to {c} in the choir.|{c} drives {v} for the city.",
        "{c}, beside whom {n} sings, has the job of driving {v}.",
    ),
    _chain(
        "Who did the tiles in your bathroom?|{c} did them in one weekend.",
        "Why was {c} so cross?|Somebody had taken {v} from the car.",
        "the drill|a laser level|two saws|the compressor",
        "What was stolen from the craftsman who worked at {n}'s home?",
        "{c} did the tiles in {n}'s bathroom.|Somebody took {v} from {c}'s car.",
        "{v} was stolen from {c}, the craftsman who tiled {n}'s bathroom.",
    ),
    _chain(
        "Who will be your witness at the registry?|I asked {c}, who cried.",
        "Has {c} landed yet?|Tomorrow, from {v}, with three suitcases.",
        "Montevideo|Nairobi|Hanoi|Reykjavik",
        "From which city does the guest of honour at {n}'s wedding come?",
        "{c} will be the witness when {n} marries.|{c} arrives from {v}.",
        "{c}, witness at {n}'s wedding, comes from the city of {v}.",
    ),
    _chain(
        "Who reads your chapters first?|{c} does, with a red pen.",
        "Why has {c} no time?|Because of {v}, every evening until March.",
        "rehearsals|a course in Greek|the tax office|twins",
        "What keeps the first reader of {n}'s book busy?",
        "{c} reads {n}'s chapters first.|{c} has no time because of {v}.",
        "The first reader of {n}'s book, {c}, is busy with {v}.",
    ),
    _chain(
        "Whose cat is on your sofa?|That belongs to {c}, I am only the hotel.",
        "When is {c} back?|After {v}, if the doctors agree.",
        "Easter|the harvest|the exam weeks|the regatta",
        "Until when does {n} take care of a pet for its owner?",
        "{n} keeps the cat of {c}.|{c} comes back after {v}.",
        "{n} takes care of a pet until its owner {c} is back after {v}.",
    ),
    _chain(
        "Who bought your old canoe?|{c} took it, and paid in honey.",
        "What happened to {c}?|A wave threw {c} against {v}.",
        "a bridge|the weir|a ferry|a pier",
        "Which accident had the buyer of {n}'s boat?",
        "{c} bought {n}'s old canoe.|A wave threw {c} against {v}.",
        "The buyer of {n}'s boat, {c}, had an accident at {v}.",
    ),
    _chain(
        "Who plays with you on Mondays?|{c} and I, chess until midnight.",
        "And {c} wants to leave?|Yes, {c} has an offer from {v}.",
        "a bank in Zurich|a zoo|the university of Graz|an airline",
        "Where could {n}'s opponent at the board work soon?",
        "{n} plays chess with {c} on Mondays.|{c} has an offer from {v}.",
        "{n}'s opponent at the chess board, {c}, could soon work at {v}.",
    ),
)
CHAINS_HELD_BACK = 7
"""Index of the first chain that is held back."""

TRAITS = (
    _trait(
        "What are you up to tonight?/Rehearsal, we are doing Mozart with forty voices.|Is that bag "
        "heavy?/Scores. I turn pages for a pianist on Sundays.",
        "Would {n} like a ticket for classical music?|Should we take {n} along to the opera?",
        "{n} rehearses Mozart with forty voices.|{n} turns pages for a pianist.",
        "{n} loves classical music.",
    ),
    _trait(
        "Why are you leaving already?/Their cat sat on my coat, my eyes are closing.|You look "
        "tired./The pills, as always when the birches bloom.",
        "Does {n} have allergies?|Would a kitten be a good present for {n}?",
        "{n}'s eyes close where a cat has been.|{n} takes pills when the birches bloom.",
        "{n} has allergies to animals and to pollen.",
    ),
    _trait(
        "Did you take the lift?/Thirty floors by stairs, I do not get into those boxes.|Why the "
        "train?/Ten hours, but at least nobody closes a hatch over me.",
        "What is {n} afraid of?|Could {n} sleep in a tent for one or in a submarine?",
        "{n} takes the stairs instead of the lift.|{n} prefers ten hours of train to a flight.",
        "{n} is afraid of narrow rooms.",
    ),
    _trait(
        "What is in the jar?/Coins. No card and no loan since I was eighteen.|New coat?/From the "
        "charity shop, four euros, with a lining.",
        "Is {n} careful with money?|Would {n} buy a sports car on credit?",
        "{n} takes no loans.|{n} buys coats at a charity shop.",
        "{n} is careful with money.",
    ),
    _trait(
        "You never post a picture?/I gave up my account when they sold the addresses.|Why is there "
        "tape on your laptop?/Over the lens. One never knows who is looking.",
        "Does {n} care about privacy?|Would {n} want a loudspeaker that listens at home?",
        "{n} gave up an account because addresses were sold.|{n} has tape over the lens of the "
        "laptop.",
        "{n} cares a lot about privacy.",
    ),
    _trait(
        "What is that noise?/The lathe, I am turning legs for a stool.|Did you buy the shelf?/Cut "
        "it from an ash that fell in our lane.",
        "Can {n} make furniture?|Who could repair our wobbly table, would {n} be able to?",
        "{n} turns legs for a stool on a lathe.|{n} cut a shelf from an ash.",
        "{n} makes furniture as a hobby.",
    ),
    _trait(
        "Up at five again?/The first swim before the ice melts off the rail.|Are you cold?/Never, "
        "I sleep with the window open in January.",
        "Does {n} mind the cold?|Is a trip to Lapland in winter something for {n}?",
        "{n} swims while there is ice.|{n} sleeps with an open window in January.",
        "{n} does not mind cold weather.",
    ),
    _trait(
        "Where did you learn that accent?/Three years behind a bar in Lyon.|Who are the postcards "
        "for?/For my host family, they answer with recipes I read aloud.",
        "Which language can {n} speak?|Could {n} interpret for a visitor from Paris?",
        "{n} worked behind a bar in Lyon for three years.|{n} exchanges postcards with a host "
        "family.",
        "{n} can speak French.",
    ),
    _trait(
        "Seconds?/Thanks, but nothing that ever had a mother.|New boots?/Cork, the old ones had a "
        "cow in them.",
        "Is {n} vegan?|What should we not put on {n}'s pizza, ham or peppers?",
        "{n} eats nothing that had a mother.|{n} wears boots of cork.",
        "{n} is vegan.",
    ),
    _trait(
        "How was the party?/I stayed in the kitchen and dried glasses.|Did you call them?/I wrote "
        "a letter, ringing people takes me a week of courage.",
        "Is {n} shy?|Would {n} enjoy a role as a host on stage?",
        "{n} stayed in the kitchen at a party.|{n} writes letters instead of ringing people.",
        "{n} is shy with other people.",
    ),
    _trait(
        "What is under the sheet?/A carburettor, the Norton leaks again.|You smell of "
        "petrol./Sunday ride with the chapter, six passes.",
        "Does {n} ride motorcycles?|What could be on {n}'s wish list, a helmet or a vase?",
        "{n} repairs the carburettor of a Norton.|{n} crossed six passes on a Sunday ride.",
        "{n} rides and repairs motorcycles.",
    ),
    _trait(
        "What are you counting?/Ringed plovers, forty before the tide.|Up in the reeds?/With the "
        "scope, from four in the morning.",
        "Is {n} a birdwatcher?|Would {n} like a walk through a nature reserve at dawn?",
        "{n} counts ringed plovers.|{n} is in the reeds with a scope at four.",
        "{n} is a keen birdwatcher.",
    ),
    _trait(
        "Why the big letters?/The small ones swim since last winter.|Shall I read it to "
        "you?/Please, the menu is one grey line to me.",
        "Has {n} poor eyesight?|Would a thick paperback suit {n} as a gift?",
        "{n} needs big letters.|A menu is a grey line to {n}.",
        "{n} has poor eyesight.",
    ),
    _trait(
        "Whose sleeping bags are these?/My scouts', twenty of them, I lead them since May.|Are you "
        "free on Saturday?/I read to the first graders at the library.",
        "Does {n} work with children as a volunteer?|Who could entertain guests of six years, "
        "would {n} do that well?",
        "{n} leads twenty scouts.|{n} reads to first graders.",
        "{n} is a volunteer with children.",
    ),
)
TRAITS_HELD_BACK = 7
"""Index of the first trait that is held back."""

COMPANIONS = (
    *("Bertil", "Oona", "Priyanka", "Dmitri", "Rosa", "Kwame", "Lindqvist", "Aurel"),
    *("Hortense", "Jarek", "Malik", "Ottoline", "Silvana", "Zdenek", "Wilma", "Ezra"),
)
