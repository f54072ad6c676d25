"""English."""

from __future__ import annotations

CUES = {
    "home": (
        "live lives lived living reside* home house apartment flat address moved move moving "
        "relocat* settled"
    ),
    "origin": "come_from comes_from from born grew_up raised hometown nationality native",
    "employer": (
        "work works worked working job employer company started_at joined hired quit office"
    ),
    "profession": (
        "profession occupation job_title do_for_a_living does_for_a_living work_as works_as "
        "working_as career do_for_work role position | work_as works_as working_as nurse "
        "teacher engineer doctor developer programmer designer lawyer accountant carpenter "
        "writer journalist student retired freelance* manager scientist researcher baker chef "
        "driver consultant hygienist technician clerk cashier waiter waitress plumber "
        "electrician mechanic days_a_week"
    ),
    "age": (
        "how_old age aged turned years_old birthday | years_old year_old aged turned i_am_# "
        "i'm_# he's_# she's_# he_is_# she_is_# is_#_years"
    ),
    "birthday": "birthday born birth_date date_of_birth",
    "food": (
        "eat eats eating diet food foods meal meals vegetarian vegan pescatarian breakfast "
        "lunch dinner cook cooks kosher halal meatless gluten | eat eats eating diet food "
        "foods meal meals vegetarian vegan pescatarian breakfast lunch dinner cook cooks "
        "kosher halal gluten lactose fish meat eat_again"
    ),
    "drink": "drink drinks drinking beverage beverages coffee tea wine beer alcohol juice",
    "allergy": (
        "allerg* intoleran* allergic reaction | allerg* intoleran* celiac coeliac can't_eat "
        "cannot_eat hives get_hives anaphyl*"
    ),
    "health": (
        "ill illness sick disease condition diagnos* medication medicine asthma diabet* "
        "migraine* injur* health surgery"
    ),
    "partner": "husband wife partner spouse boyfriend girlfriend fiance fiancee married single",
    "children": "child children kid kids son sons daughter daughters baby",
    "mother": "mother mom mum",
    "father": "father dad",
    "parents": "parents",
    "brother": "brother brothers",
    "sister": "sister sisters",
    "siblings": "siblings",
    "grandparents": "grandmother grandma grandfather grandpa grandparents granddad",
    "relatives": "aunt uncle cousin cousins niece nephew relatives family",
    "friend": "friend friends buddy roommate flatmate",
    "boss": "boss manager supervisor",
    "colleague": "colleague* coworker*",
    "pets": (
        "pet pets dog dogs cat cats puppy kitten rabbit hamster parrot horse fish animals "
        "breed | pet pets dog dogs cat cats puppy kitten rabbit hamster parrot horse fish "
        "animals greyhound poodle terrier labrador retriever tortoise turtle guinea_pig budgie "
        "canary ferret chicken chickens lizard snake adopted"
    ),
    "leisure": (
        "hobby hobbies free_time spare_time leisure fun weekend weekends sport sports | hobby "
        "hobbies free_time spare_time weekends play plays playing climb* hik* swim* run runs "
        "running cycl* paint* danc* yoga gym tennis football soccer chess fishing skiing knit* "
        "garden* photograph*"
    ),
    "music": (
        "instrument instruments play_music band orchestra choir | cello violin guitar piano "
        "drums flute sing sings band orchestra choir instrument"
    ),
    "film": "film films movie movies",
    "book": "book books novel novels read reads reading",
    "favourite": (
        "favourite favourites favorite favorites | favourite favourites favorite favorites"
    ),
    "languages": (
        "language languages speak speaks fluent | speak speaks in_english in_german in_french "
        "in_spanish language languages fluent bilingual mother_tongue"
    ),
    "contact": "contact reach | reach_me email e-mail phone @address call_me contact_me write_me",
    "wedding": (
        "wedding marry marrying marries getting_married engaged engagement get_married | "
        "wedding marry* getting_married engaged get_married got_married"
    ),
    "travel": (
        "holiday holidays vacation trip travel travels travelling traveling journey | holiday* "
        "vacation trip travel* journey flying_to fly_to visit*"
    ),
    "commute": (
        "get_to_work gets_to_work commute commutes go_to_work goes_to_work | commute* to_work "
        "to_the_office bike bus train drive"
    ),
    "study": (
        "study studies studying studied university college degree school | study studies "
        "studying studied university college degree"
    ),
    "style": (
        "should_i_answer should_i_reply should_i_respond should_i_write should_i_talk answers "
        "replies instructions format how_should_i responses addressed | always never please "
        "answer reply respond short from_now_on don't call_me use under_five_lines bullet "
        "emojis"
    ),
    "plans": "plan plans planning | plan plans planning going_to will next",
    "car": (
        "car vehicle automobile drive drives driving transport | car van truck drive driving "
        "honda toyota ford skoda volkswagen bmw tesla fiat renault"
    ),
    "appointment": (
        "appointment appointments checkup visit | appointment exam checkup at_#_pm at_#_am"
    ),
    "medication": (
        "medication medicine medicines pills tablets takes | pills tablets medication medicine "
        "i_take"
    ),
    "email": "email e-mail mail | @mail email e-mail",
    "phone": "phone telephone number mobile cell | @number phone_number my_number",
    "learning": "learning studying studies lessons course | learning lessons course classes",
    "smoking": "smoke smokes smoker | smoke smoking smoker cigarettes",
    "author": "author writer novelist",
    "singer": "singer band artist musician | singer band artist",
}
WEAK = (
    "next upcoming user users name names called call like likes liked love loves prefer prefers "
    "enjoy enjoys kind type sort many much currently current now these_days nowadays today "
    "really usually often still please tell know think say said does person people thing things "
    "use uses used want wants need needs new own owns day days time go goes going get gets have "
    "has take takes give favourite favorite best main moment right view opinion feel feels "
    "month months year years date exactly present possess possesses suffer suffers keep keeps "
    "turn"
)
SUBJECT = "i we"
UNREAL = (
    "if_i if_we would_have imagine imagining hypothetically suppose in_my_story in_my_novel "
    "in_the_story "
    "in_my_book the_hero the_protagonist my_character i_wish i_dreamt i_dreamed pretend "
    "protagonist heroine main_character the_narrator in_the_novel in_the_film in_the_movie "
    "in_the_series in_a_novel in_a_film my_novel novel_idea story_idea my_short_story "
    "writing_a_story my_hero my_heroine my_protagonist in_the_book in_the_podcast in_this_show "
    "watching_this_* i'm_kidding just_kidding kidding joking i_dream_of_being"
)
PERSON = "i me my mine we us our he she him her his hers they them their theirs you your"
NAME = r"(?:[Mm]y name is|I'm|I’m|I am|[Cc]all me) ([A-Z]\w+)|(?<!\w)([A-Z]\w+) here\b"
