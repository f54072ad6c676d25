"""Word lists of the text analysis: English stop words, words that are rarely a person's name in
lower case, months."""

from __future__ import annotations

_STOP_WORDS = """
    a about above after again against all also am an and any are as at be because been before \
being below between both but by
    can cannot could did do does doing down during each else ever few for from further had has \
have having he her here hers
    herself him himself his how i if in into is it its itself just let me more most much my myself \
no nor not of off on once only
    or other our ours ourselves out over own same shall she should so some such than that the \
their theirs them themselves then
    there these they this those through to too under until up upon us very was we were what when \
where whether which while who
    whom whose why with would yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Without "may", "will" and "might": a month and names matter more than the cost of modal verbs,
whose idf is low anyway."""

CONTRACTIONS = frozenset(("ain't", "can't", "cannot", "shan't", "won't"))
"""Negated auxiliaries whose stem is not the auxiliary; all are stop words."""

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

TITLES = frozenset(
    ("dr", "lady", "lord", "madam", "miss", "mr", "mrs", "ms", "mx", "prof", "professor", "sir")
)
"""Titles before a name: not names themselves."""

OPENERS = frozenset(
    (
        "can",
        "did",
        "do",
        "does",
        "had",
        "has",
        "have",
        "is",
        "let",
        "may",
        "might",
        "must",
        "shall",
        "will",
        "would",
    )
)
"""Words that often open an English sentence: their capital letter there does not mark a name."""

_ROLES = """
    admin administrator advisor adviser agent ai analyst anonymous app application architect \
artist assistant author bot boss brother
    buyer captain caller chat chatbot chief child client coach colleague companion consultant \
customer dad daughter default
    designer developer doctor driver editor employee engineer expert father friend gpt guest guide \
helper host human
    husband interviewer judge lawyer lead leader learner llm main manager mate member memory \
mentor model moderator mom mother
    mum narrator neighbor neighbour nurse observer operator owner parent participant partner \
patient peer person pilot planner
    player programmer project prompt researcher reviewer root sales seller service session shared \
sister son speaker staff
    stranger student sub summary support system teacher team tester therapist tool trainer \
translator tutor user users visitor
    voice wife worker workspace writer
"""
_WORDS_THAT_ARE_NAMES = """
    amber angel april art august autumn bill bishop bob brook bud carol cash chance chase chip \
christian clay cliff colt cook
    crystal daisy dale dawn dean dick don drew duke earl east eden ember faith fern forest frank \
gale gene ginger glen grace
    grant guy harmony haven heath heather holly honey hope hunter iris ivy jack jade jasmine jay \
jean jewel joy june justice
    king knight lance lane lee lily long love lucky marina mark marsh mason may melody mercy miles \
mill misty monday myrtle
    nick noble north ocean olive page pansy park pat patience pearl penny pierce poppy pray price \
prince queen ray reed rich
    river rob robin rock rose ruby rusty sage sandy sky skip sonny sorrow south spring star stone \
sue summer sunday sunny
    terry tuesday violet wade wayne west will willow winter wolf wood wren young
"""
_COMMON = """
    able account across action actually add again ago air almost alone along already always among \
answer area around ask asked
    baby back bad bank base beach beautiful become bed begin believe best better big bike bird \
birthday black blue board boat body
    book books born bread break bring brown build building business busy buy call called camera \
camp car card care cat center
    chair change check cheap city class clean clear climb close clothes cloud code coffee cold \
color colour come company computer concert
    cost country course cup cut daily dance data date day days dead deal dear deep design desk \
different dinner dog done door
    draw dream drink drive early earth easy eat email end energy enjoy enough even evening event \
every example eye face fact fall
    family fan far farm fast favorite favourite feel field fight find fine fire first fish fit \
five flat floor flower fly food foot
    form found four free fresh friday full fun future game games garden gave get gift girl give \
glad glass go goal god gold good
    got great green group grow gym half hand happen happy hard hat head health hear heard heart \
heavy help high hill hobby hold
    holiday home horse hospital hot hotel hour house idea important info interest island issue \
item job join keep key kid kids kind
    kitchen know lab lake land language large last late later law learn leave left less lesson \
letter level life light like line list
    listen little live local look lost lot low lunch made mail make man many map market married \
match matter maybe mean meat
    meet meeting message middle might milk mind minute miss moment money month moon morning \
mountain move movie music must
    name near need never new news next nice night note nothing now number office often oil ok okay \
old one online open orange
    order outside paint paper party past pay people perhaps pet phone photo picture piece place \
plan plane plant play please point
    pool poor post power present pretty price problem program public put question quick quiet race \
radio rain read ready real
    really reason red remember research rest right ring road room round run sad said sale salt \
save say saw school science sea season
    second secret see seem seen sell send set seven shop short show sick side sign simple sing \
single site six size sleep slow
    small smart smile snow social soft some song soon sorry sort sound space speak special sport \
stand start state stay still stop
    store storm story street strong study stuff sugar sun sure sweet swim table take talk tall \
task tea tell ten test thank thanks
    thing things think three thursday ticket time tired today together tomorrow tonight took top \
town trade train travel tree trip true
    try turn two type uncle understand use used vacation video view visit wait walk wall want war \
warm wash watch water way weather
    wedding wednesday week weekend well went wet white wide wind window wine woman word words work \
world write wrong yard year
    years yellow yes yesterday zero
"""
ORDINARY_WORDS = (
    frozenset((_ROLES + _WORDS_THAT_ARE_NAMES + _COMMON).split())
    | STOP_WORDS
    | {m.lower() for m in MONTHS}
    | {"saturday"}
)
"""Ordinary words that may be peer ids: in a query they name the peer only if they have a capital
letter."""
