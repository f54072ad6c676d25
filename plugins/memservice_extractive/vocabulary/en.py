"""English."""

from __future__ import annotations

CUES = {
    "home": (
        "located location based_in city town village neighbourhood neighborhood reside* settle* "
        "stay* rent rents landlord where_is_*_now where_*_living which_city which_town "
        "place_of_residence based | based_in based_out_of located neighbourhood neighborhood "
        "rent* landlord flat_in studio_in cottage moved_to new_place my_place place_in keys_to "
        "got_the_keys bought_a_house bought_a_flat relocat* settled settling unpack* roommate* "
        "flatmate* housemate* moved_into moving_into moved_back moved_out settled_in settling_in "
        "resettled relocated our_new_house my_new_flat new_apartment new_house bedsit dorm "
        "home_now is_home been_in_*_since been_in_*_for landed_in living_in here_in_* ended_up_in "
        "arrived_in"
    ),
    "origin": (
        "homeland country_of_origin roots ancestry originally birthplace childhood | originally "
        "homeland roots born_in raised_in grew_up emigrated immigrated came_here_from childhood "
        "grew_up_in"
    ),
    "employer": (
        "workplace firm organisation organization business startup earns_*_living make_*_money "
        "earn_money | workplace firm startup hired laid_off fired resigned promoted promotion "
        "new_job first_day shift shifts my_boss freelance* self-employed start_at starting_at "
        "on_the_payroll contract_with run_a_* own_a_shop own_business start_as started_as "
        "starting_as start_a_new_job new_role joining i_manage handed_in_my_notice gave_notice "
        "i_own my_company my_shop my_studio my_practice took_over opened_my opening_my "
        "made_redundant job_at got_the_job i_sell i_repair i_coach i_train i_supervise took_me_on "
        "hired_me offered_a_place offered_a_job offered_me got_hired new_gig day_job postdoc "
        "my_clients my_patients my_students my_pupils own_boss i_quit packed_in_my"
    ),
    "profession": (
        "occupation trade living for_work job employed earn_a_living paid_for make_*_money "
        "research do_*_research field_of line_of_work | architect* accountant* actor actress "
        "analyst artist barista barber beekeeper biologist bookkeeper bricklayer builder butcher "
        "cabin_crew cardiologist carer chemist cleaner coach composer cook copywriter courier "
        "curator dentist dietitian director economist editor electrician engineer* farmer "
        "firefighter fisherman florist gardener geologist geographer graphic hairdresser "
        "historian illustrator instructor interpreter janitor jeweller joiner judge landscaper "
        "lecturer librarian lifeguard locksmith machinist marketing mason midwife miner musician "
        "nanny notary nurse* optician optometrist painter paralegal paramedic pastor pharmacist "
        "photographer physicist physio* pilot police* postman postwoman potter principal producer "
        "professor psychologist radiologist ranger realtor receptionist roofer sailor salesperson "
        "salesman saleswoman secretary security_guard seamstress shop_assistant social_worker "
        "soldier statistician surgeon surveyor tailor teach teaches therapist tour_guide trainer "
        "translator truck_driver tutor vet veterinarian warehouse_worker web_dev* welder by_trade "
        "for_a_living promoted_to apprentice* intern internship i_work_in i_run_a start_as "
        "started_as starting_as role_as position_as job_as dispatcher bartender sous-chef "
        "sous_chef sysadmin caretaker inspector glazier stonemason upholsterer dressmaker brewer "
        "beautician stylist model dancer choreographer conductor sculptor ceramicist animator "
        "tester recruiter broker estate_agent banker auditor solicitor barrister magistrate "
        "detective anaesthetist paediatrician pediatrician orthodontist chiropractor osteopath "
        "podiatrist counsellor counselor priest vicar zookeeper groomer shepherd forester "
        "meteorologist astronomer archaeologist sociologist linguist housewife househusband "
        "unemployed between_jobs i_manage i_own i_sell i_repair i_coach i_train i_supervise i_fix "
        "i_teach i_design i_edit i_translate i_inspect i_advise i_consult i_restore i_install "
        "i_deliver i_program i_build i_lead i_treat i_research postdoc fellowship i_look_after "
        "i_paint_for my_clients my_patients my_students day_job self-employed"
    ),
    "age": (
        "age_of old years_of_age | years_of_age turning turned turn_# birthday_*_# in_my_forties "
        "in_my_thirties in_my_twenties in_my_fifties in_my_sixties in_my_late_* in_my_early_* "
        "just_turned"
    ),
    "birthday": (
        "birthdate celebrate* | birthdate bday b-day born_on turn_# my_birthday birthday_is turn "
        "turns"
    ),
    "food": (
        "dish dishes cuisine snack* dessert* meal_*_like treat pastry cake avoid | dish cuisine "
        "snack* dessert* pastry cake pie bread cheese sushi pizza pasta lasagn* curry ramen "
        "noodles soup stew steak burger* taco* dumpling* chocolate ice_cream rice fruit "
        "vegetables plant-based pork beef chicken_soup seafood shellfish dairy sugar keto "
        "low-carb paleo fasting bake bakes baked roast risotto biryani pancake* gave_up cut_out "
        "stopped_eating stop_eating no_longer_eat don't_eat never_eat oysters tofu hummus "
        "porridge waffles omelette* gnocchi"
    ),
    "drink": (
        "thirst* booze milk | espresso latte cappuccino matcha chai cider whisky whiskey gin "
        "cocktail* lemonade soda cola milk teetotal* sober caffeine decaf kombucha dairy lactose "
        "stopped_drinking no_alcohol don't_drink smoothie* hot_chocolate dry_january "
        "off_the_booze not_a_drop"
    ),
    "allergy": (
        "tolerate* not_tolerate can't_*_eat should_*_avoid react* dangerous_for_* sensitiv* "
        "make_*_ill make_*_sick must_avoid react no-go off-limits | allergic react_badly "
        "makes_me_sneeze swell* rash hay_fever epipen epi-pen throat_close* throat_swell* "
        "close_up break_out breaks_out break_me_out itch* sneez* sensitive_to can't_have "
        "cannot_have makes_me_ill makes_me_sick upsets_my_stomach come_out_in comes_out_in bloat* "
        "blotches allergist react_to reacts_to can't_touch welts puffy puffed_up swollen swelled "
        "a&e emergency_room no_go_for_me off_limits stay_away_from keep_away_from go_near gasping "
        "couldn't_breathe can't_breathe my_tongue my_lips my_throat epipens"
    ),
    "health": (
        "ailment suffer* diagnosis medical disorder chronic pain complaint headache* operation "
        "operated knee back shoulder ankle wrist hip foot leg arm stomach neck elbow injured "
        "injury hurt wrong_with happened_to matter_with | suffer* chronic pain arthritis epilep* "
        "anaemi* anemi* adhd autis* dyslexi* depress* anxiety insomnia hypertension "
        "blood_pressure cholesterol thyroid crohn* celiac coeliac eczema psoriasis tinnitus "
        "scoliosis lupus cancer broke_my sprained twisted hernia slipped_disc sciatica back_pain "
        "bad_back vertigo sinus* glaucoma hearing_aid* pacemaker sleep_apnea endometriosis "
        "pregnan* fibromyalgia gout reflux ibs asthmatic diabetic epileptic had_a_stroke "
        "heart_condition wheelchair colour-blind color-blind deaf operation operated torn tore "
        "fractured frozen_shoulder physio mri x-ray plaster crutches slipped pulled inflam* "
        "orthop*"
    ),
    "partner": (
        "dating relationship significant_other marital engaged together_with better_half "
        "seeing_someone | ex-husband ex-wife dating divorced divorce widow* engaged my_other_half "
        "my_better_half girlfriend boyfriend hubby missus newlywed* been_together been_married "
        "wedding_anniversary my_partner's broke_up split_up we_split single_again tied_the_knot "
        "my_ex"
    ),
    "children": (
        "offspring toddler twins stepson stepdaughter | toddler twins triplets newborn stepson "
        "stepdaughter my_eldest my_youngest my_oldest my_girls my_boys my_little_one"
    ),
    "parents": "mum_and_dad mom_and_dad",
    "siblings": (
        "brother brothers sister sisters sibling | brother brothers sister sisters sibling "
        "twin_brother twin_sister"
    ),
    "friend": "best_friend pal mate",
    "colleague": "teammate workmate",
    "pets": (
        "animal kitten cockatiel companion | cockatiel corgi beagle dachshund collie spaniel "
        "labradoodle goldendoodle bulldog husky pug mutt tabby siamese persian maine_coon bunny "
        "rats rat mice gecko iguana snake goldfish aquarium pony horses goats ducks parakeet "
        "budgies hedgehog hens hen rescue_dog rescue_cat vet cockatoo macaw lovebird* finch* "
        "pigeon* axolotl tarantula frog* toad* newt* chameleon python boa degu* chinchilla* "
        "gerbil* hamsters bunnies rabbits guinea_pigs ponies donkey* sheep llama* alpaca* pig "
        "pigs goat geese goose duck whippet lurcher schnauzer dalmatian rottweiler doberman "
        "chihuahua pomeranian maltese akita malamute setter cockapoo weimaraner bengal ragdoll "
        "sphynx tomcat kitty pup puppies kittens stray"
    ),
    "leisure": (
        "exercise workout spend_*_evenings unwind relax pastime for_fun activities activity "
        "active fit keep_fit in_shape | train_for marathon triathlon half_marathon exercise* "
        "workout* jog* row rowing kayak* surf* sail* climb bouldering boxing judo karate "
        "taekwondo fencing archery badminton squash basketball volleyball cricket rugby hockey "
        "golf bowling ballet salsa tango zumba pilates crossfit skateboard* snowboard* ski skate "
        "skating dive diving scuba pottery ceramics sew* crochet* quilt* embroider* woodwork* "
        "carpentry origami sketch* draw drawing birdwatch* bird-watch* stargaz* astronomy camp "
        "camping bake baking puzzle* crosswords board_games dungeons collecting beekeep* foraging "
        "geocaching horse_riding riding calligraphy watercolo* theatre improv ping-pong "
        "table_tennis collect bird_watching genealogy model_trains chess_club book_club choir "
        "escape_rooms darts billiards snooker fit"
    ),
    "music": (
        "play_*_instrument musical genre listen* | saxophone trumpet trombone clarinet oboe harp "
        "ukulele banjo accordion harmonica mandolin viola bass bassoon keyboard organ bagpipes "
        "percussion djembe synth* recorder flute lute choir soprano alto tenor baritone jazz rock "
        "metal techno hip-hop folk classical play_the fiddle sitar koto xylophone marimba tuba "
        "cornet piccolo french_horn concertina drum euphonium bugle sousaphone fife hurdy-gurdy "
        "dulcimer zither lyre tabla erhu guzheng shamisen balalaika bouzouki theremin "
        "glockenspiel timpani cymbals melodica kalimba ocarina didgeridoo cajon bongos congas"
    ),
    "film": (
        "watch* documentary cinema | watch* documentary cinema director rewatch* "
        "movie_of_all_time horror_film* western"
    ),
    "series": (
        "series show shows tv television sitcom streaming | series tv_show show sitcom netflix "
        "season episode* binge*"
    ),
    "book": (
        "literature poem poet fiction | finished_reading poem poet thriller memoir biography "
        "by_*_is_my reread*"
    ),
    "favourite": (
        "favourit* favorit* best like_*_most like_*_best most_like loves_*_most top go-to | love "
        "loves adore adores prefer best my_go-to all-time can't_get_enough nothing_beats "
        "never_get_tired the_most obsessed huge_fan big_fan"
    ),
    "dislike": (
        "dislike* hate hates can't_stand detest* annoy* not_like doesn't_like can't_*_stand "
        "cannot_stand not_stand bear disgust* least_favourite loathe* dislike like_least put_off "
        "| hate hates dislike* can't_stand detest* loathe* annoy* not_a_fan i_don't_like "
        "can't_bear can't_abide not_my_thing not_for_me could_do_without can_do_without "
        "i'd_rather_* rather_die the_creeps puts_me_off gross disgusting yuck revolting overrated "
        "awful horrible vile a_crime sick_of fed_up leave_it_out leave_out_the not_a_big_fan "
        "drives_me_* never_touch won't_touch ghastly tastes_like_* tastes_of smells_like no_way "
        "loathsome horrendous"
    ),
    "languages": (
        "mother_tongue native_language tongue understand* | native_speaker i_speak french spanish "
        "german italian portuguese russian chinese mandarin japanese korean arabic dutch swedish "
        "norwegian danish finnish polish turkish greek hindi urdu swahili welsh irish"
    ),
    "contact": "get_in_touch | get_in_touch number_is email_me text_me whatsapp",
    "wedding": (
        "ceremony honeymoon tie_the_knot spouse_on | ceremony honeymoon tie_the_knot "
        "tying_the_knot fiance fiancee proposed big_day registry_office"
    ),
    "travel": (
        "going_on_holiday destination abroad visit visiting fly flying country flown plane "
        "go_on_holiday head_off where_*_going | flights flight booked going_to_*_in cruise "
        "backpack* road_trip hostel airbnb itinerary tickets_to train_to weekend_in week_in "
        "weeks_in off_to heading_to headed_to back_from flight_to tickets plane flown by_train "
        "by_bus days_in"
    ),
    "commute": (
        "way_to_work get_to_the_office transport* travel_to_work get_around gets_around "
        "getting_around mode_of_transport | tram metro subway tube cycle walk_to carpool ferry "
        "bicycle everywhere e-bike e-scooter moped on_foot"
    ),
    "study": (
        "major degree_in enrolled course campus phd thesis master's bachelor's diploma enrol* | "
        "phd thesis master's bachelor's diploma major enrolled semester campus freshman sophomore "
        "graduated graduate dissertation apprenticeship enrol* uni foundation_course night_school"
    ),
    "style": (
        "should_i_address reply response length tone style_of answer_*_questions writing_style "
        "how_long_may kept_in formatted units unit_*_use how_*_answer how_*_respond how_*_reply "
        "preferred_format how_*_addressed talk_to_* write_to_* phrase* messages texts unit | "
        "short brief concise formal informal casual metric bullet_points no_emojis without_emojis "
        "don't_use avoid plain spell lowercase uppercase tables in_english in_spanish in_german "
        "in_french step_by_step celsius fahrenheit kilometres kilometers miles one_sentence "
        "two_sentences three_sentences numbered straight_to_the_point get_to_the_point no_jargon "
        "british_spelling american_spelling 24-hour cite sources by_my_first_name first_name "
        "no_small_talk"
    ),
    "plans": "intend* upcoming going_to hope* | hope_to intend* planning",
    "car": (
        "motorbike motorcycle scooter vehicle wheels get_around gets_around | motorbike "
        "motorcycle scooter van mazda nissan hyundai kia subaru volvo peugeot citroen opel audi "
        "mercedes chevrolet jeep suzuki porsche seat dacia mini hybrid electric_car licence "
        "license drove can't_drive learner minivan camper* pickup motorhome lexus cupra vauxhall "
        "corolla civic bike e-bike cargo_bike moped"
    ),
    "appointment": (
        "see_the_doctor see_the_dentist scheduled schedule when_is_*_dentist | scheduled "
        "booked_in dentist_on surgery_on interview_on at_#:#_* on_the_#* slot check-up x-ray mri "
        "scan blood_test vaccination"
    ),
    "medication": (
        "drug drugs prescri* treat* | prescri* inhaler insulin antibiotic* ibuprofen paracetamol "
        "metformin dose mg painkiller* antihistamine* vitamin* statin* beta_blocker* injection* "
        "levothyroxine tablet every_morning_for pill take_*_for i'm_on_* swallow prescribed "
        "tablets_for"
    ),
    "phone": "call dial | reached_on call_me_on",
    "device": (
        "device phone_model smartphone laptop computer tablet operating_system mobile_phone phone "
        "mobile | iphone android pixel samsung galaxy laptop macbook thinkpad computer desktop "
        "tablet ipad linux ubuntu fedora windows macos chromebook kindle smartphone xiaomi "
        "oneplus fairphone nokia huawei motorola oppo honor realme xperia redmi"
    ),
    "learning": (
        "learn learns class teach_*_self lesson classes skill | learn evening_class night_class "
        "duolingo tutor signed_up_for enrolled teaching_myself started_learning signed_up "
        "evening_course class practising practicing learned_to_*"
    ),
    "smoking": (
        "cigarettes tobacco vape* smoking | vape* vaping nicotine tobacco quit_smoking cigarette* "
        "fag fags pack_a_day ciggies"
    ),
    "author": "writes_*_favourite | poet novelist author by_far_my_favourite_writer",
    "singer": "musician_*_like singer_*_like band* | concert album songs gig",
    "team": (
        "team club football_team supports support cheer* root* fan | team club fan supporter "
        "season_ticket match root_for cheer* football gig_of"
    ),
    "game": (
        "video_game videogame game games gaming console cards board_game play_*_game | game games "
        "gaming playstation xbox nintendo switch steam zelda minecraft dominoes chess cards poker "
        "bridge mahjong backgammon scrabble bingo"
    ),
    "colour": "colour color colours colors | colour color",
    "fear": (
        "afraid fear fears scared phobia frighten* scare* terrif* dread* phobias | afraid fear "
        "fears scared terrified phobia panic freak* creeps_me_out scare scares can't_bear heights "
        "spiders claustrophob* arachnophob* dread* terrifies frightens petrified phobias"
    ),
    "goal": (
        "goal goals dream dreams ambition aspire* want_to_become aim | goal goals dream_of "
        "my_dream ambition aspire* saving_for saving_up someday"
    ),
    "doctor": (
        "dentist gp doctor's_name therapist vet physician specialist | dentist gp my_doctor dr "
        "therapist physician specialist physio surgeon dermatolog* cardiolog* gynaecolog* "
        "paediatrician orthodontist optician"
    ),
    "sleep": (
        "sleep sleeps bedtime wake wakes get_up gets_up | sleep bedtime wake get_up alarm "
        "insomnia early_bird night_owl"
    ),
    "money": (
        "salary earn earns income budget rent_cost pay pays savings | salary earn income budget "
        "per_month a_month savings euros dollars pounds"
    ),
    "religion": (
        "religion religious faith believe_in church | religion religious muslim christian "
        "catholic protestant jewish buddhist hindu atheist church mosque temple synagogue ramadan"
    ),
    "size": (
        "tall height weigh weighs weight shoe_size size blood_type | tall height weigh kilos kg "
        "cm shoe_size size_# feet blood_type"
    ),
    "software": (
        "software app tool tools program programs editor programming_language ide browser | "
        "software app editor vim emacs excel python rust java javascript typescript photoshop "
        "figma firefox chrome"
    ),
    "project": (
        "project projects working_on writing building | project projects working_on writing_a "
        "building_a launching thesis novel prototype"
    ),
    "collection": "collect collects collection | collect collecting collection",
    "volunteering": "volunteer* charity charitable | volunteer* charity shelter food_bank",
    "garden": (
        "garden gardening plants grow grows balcony allotment | garden gardening plants grow "
        "balcony allotment tomatoes roses herbs greenhouse"
    ),
    "deadline": (
        "deadline due exam test hand_in submit | deadline due exam hand_in submit by_friday "
        "by_monday"
    ),
    "diet": (
        "diet vegetarian vegan meatless dietary eats_meat eat_meat eat_fish | vegetarian vegan "
        "pescatarian kosher halal gluten lactose keto meat fish plant-based dairy gave_up_meat "
        "no_meat stopped_eating_meat dairy-free gluten-free sugar"
    ),
    "sport": (
        "sport sports exercise workout | train_for training marathon triathlon exercise* workout* "
        "jog* run runs running row rowing kayak* surf* sail* swim* climb* hik* bouldering boxing "
        "judo karate taekwondo fencing archery badminton squash basketball volleyball cricket "
        "rugby hockey golf bowling pilates yoga crossfit skateboard* snowboard* ski skiing skate "
        "skating dive diving scuba tennis football soccer cycl* gym ping-pong"
    ),
    "email": "email_address e-mail_address mail_address |",
    "relatives": (
        "in-law in-laws father-in-law mother-in-law brother-in-law sister-in-law stepmother "
        "stepfather godmother godfather grandson granddaughter grandchild grandchildren godson "
        "goddaughter | father-in-law mother-in-law brother-in-law sister-in-law stepmother "
        "stepfather stepdad stepmum godmother godfather grandson granddaughter grandchild "
        "grandchildren godson goddaughter"
    ),
    "delivery": (
        "parcel* package* shipped shipping deliver* orders_*_sent | ship deliver* parcel* "
        "package* send_everything send_*_to_my orders_to"
    ),
    "nickname": (
        "nickname nicknames should_i_call to_be_called known_as | call_me calls_me nickname "
        "known_as"
    ),
    "neighbour": "neighbour neighbours neighbor neighbors",
    "grandparents": "gran granny nan nana grandad",
    "relation": "who_is who's who_are |",
}
