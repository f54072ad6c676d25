"""German."""

from __future__ import annotations

CUES = {
    "home": (
        "wohn* lebe lebt lebst leben lebte lebten zuhause haus wohnung adresse gezogen umgezogen "
        "zieh* umzug umziehen"
    ),
    "origin": (
        "herkunft stammt stamme kommt_aus komme_aus geboren aufgewachsen heimat | stamm* "
        "komme_aus geboren aufgewachsen heimat"
    ),
    "employer": "arbeit* job stelle firma arbeitgeber gekundigt angefangen buro",
    "profession": (
        "beruf beruflich von_beruf job | von_beruf beruf arbeite_als arbeitet_als tischler* "
        "lehrer* ingenieur* arzt arztin programmierer* entwickler* krankenpfleger* "
        "krankenschwester anwalt anwaltin student* rentner* selbststandig* koch kochin "
        "berufsschul* bin_von_beruf lehrerin backerin verkauferin buchhalter* mechaniker*"
    ),
    "age": "wie_alt alter jahre_alt | jahre_alt #_geworden ich_bin_# geburtstag bin_#",
    "birthday": "geburtstag geboren geburtsdatum",
    "food": (
        "isst esse essen ernahr* vegetari* vegan* fleisch gericht* kocht koche geback kuchen "
        "susse* nascht | isst esse ernahr* vegetari* vegan* fleisch kocht koche mahlzeit* "
        "kuchen torte keks*"
    ),
    "drink": "trink* getrank* kaffee tee wein bier alkohol saft",
    "allergy": "allerg* unvertrag* intoleran* | allerg* vertrage vertragt intoleran*",
    "health": (
        "krank* gesundheit* medikament* diagnos* asthma diabet* migrane operation leidet "
        "kopfschmerz* erkrankung beschwerden | krank* gesundheit* medikament* diagnos* asthma "
        "diabet* migrane operation kopfschmerz* leide"
    ),
    "partner": (
        "frau mann ehefrau ehemann partner partnerin freundin verheiratet ehe verlobt* ledig"
    ),
    "children": "kind kinder kindern sohn sohne sohnen tochter tochtern baby",
    "mother": "mutter mama",
    "father": "vater papa",
    "parents": "eltern",
    "brother": "bruder brudern",
    "sister": "schwester schwestern",
    "siblings": "geschwister",
    "grandparents": "oma opa grossmutter grossvater grosseltern",
    "relatives": "tante onkel cousin cousine neffe nichte familie verwandte*",
    "friend": "freund freunde freunden mitbewohner*",
    "boss": "chef chefin vorgesetzte*",
    "colleague": "kolleg*",
    "pets": (
        "haustier* hund hunde hundin katze katzen kater hamster kaninchen papagei pferd tier "
        "tiere rasse | haustier* hund hunde hundin katze katzen kater hamster kaninchen "
        "papagei pferd tier tiere wellensittich* kanarienvogel vogel schildkrote "
        "meerschweinchen pudel dackel huhn huhner"
    ),
    "leisure": (
        "hobby hobbys freizeit wochenende sport sportart* | hobby hobbys freizeit wochenende "
        "sport klett* kletter* spiel* wander* schwimm* lauf* jogg* mal* tanz* yoga tennis "
        "fussball schach angeln ski radfahren gartn* fotografier*"
    ),
    "music": (
        "instrument* musik band chor orchester | cello geige gitarre klavier schlagzeug flote "
        "singe singt band chor orchester instrument"
    ),
    "film": "film filme lieblingsfilm*",
    "book": "buch bucher roman lieblingsbuch lese liest",
    "favourite": "liebling* am_liebsten",
    "languages": (
        "sprache sprachen spricht spreche | spreche spricht sprache* muttersprache auf_deutsch "
        "auf_englisch auf_franzosisch auf_spanisch"
    ),
    "contact": (
        "kontakt* erreich* e-mail* | erreich* e-mail mail telefonnummer handynummer @address "
        "schreib_mir"
    ),
    "wedding": "hochzeit heirat* geheiratet trauung",
    "travel": "urlaub reise* reisen verreis* ferien | urlaub reise* verreis* ferien flieg*",
    "commute": (
        "zur_arbeit ins_buro arbeitsweg pendel* | zur_arbeit ins_buro arbeitsweg pendel* fahrrad"
    ),
    "study": "studi* universitat uni hochschule schule ausbildung",
    "style": (
        "soll_ich antworten antworte angeredet anreden ansprechen | immer nie bitte antworte "
        "antworten kurz nenn_mich ab_jetzt duze schreib duz duzen siez"
    ),
    "plans": "plan plane plant vor | plan plane plant vorhabe",
    "car": "auto wagen fahrzeug fahrt | auto wagen skoda vw golf bmw opel toyota ford",
    "appointment": "termin termine arzttermin | termin um_#_uhr",
    "medication": "medikament* tablette* nimmt | nehme tabletten medikament*",
    "email": "e-mail mail | @mail e-mail",
    "phone": "telefon* nummer handy* handynummer | @number nummer",
    "learning": "lernt lerne fremdsprache kurs | lerne kurs unterricht",
    "smoking": "raucht raucher* | rauche",
    "author": "autor* schriftsteller*",
    "singer": "sanger* band",
}
WEAK = (
    "nachste* kommende* nutzer* benutzer* name namen heisst heissen heisse nennt mag mogen gern "
    "gerne liebt liebe bevorzugt derzeit aktuell zurzeit momentan jetzt heute eigentlich "
    "wirklich oft meistens noch immer bitte sag sagen weisst welche welcher welches welchem "
    "welchen person leute sache benutzt nutzt will mochte braucht neu neue eigen tag zeit geht "
    "macht machen hat habe haben kommt monat jahr beste gibt womit wozu wovon worin wofur wohin "
    "woher halt meint denkt meinung findet ubt aus ausubt spielt besitzt fahrt betreibt hort "
    "nimmt tragt leidet bekommt inzwischen gerade genau datum jahre lautet lauten"
)
SUBJECT = "ich wir"
UNREAL = (
    "wenn_ich wenn_wir ware wurde_ich stell_dir_vor angenommen in_meiner_geschichte "
    "in_meinem_roman der_held die_heldin meine_figur traumte protagonist* hauptfigur* "
    "romanfigur* heldin hauptrolle in_dem_krimi in_dem_roman im_roman im_film in_der_serie "
    "in_dem_film mein_roman meinem_roman meine_romanfigur mein_held meine_heldin "
    "schreibe_an_einer_geschichte kurzgeschichte im_krimi im_buch in_dem_buch scherz "
    "spass_beiseite war_nur_spass war_ein_witz kleiner_witz wurd_ich wurde_mal ware_ich "
    "hatte_ich"
)
PERSON = "ich mich mir mein* wir uns unser* er sie ihn ihm ihnen ihr* sein* seine du dein*"
NAME = (
    r"(?:[Ii]ch hei(?:ß|ss)e|[Mm]ein Name ist|[Nn]enn mich|[Hh]ier ist(?: der| die)?) ([A-ZÄÖÜ]\w+)"
    r"|[Ii]ch bin(?: der| die)? ([A-ZÄÖÜ]\w+)(?: und|,)"
)
