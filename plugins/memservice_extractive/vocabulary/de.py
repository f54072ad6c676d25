"""German."""

from __future__ import annotations

CUES = {
    "home": (
        "wohnort wohnhaft stadt ort niedergelassen ansassig ansaessig zu_hause miete* nachbar* "
        "lebt_*_jetzt wohnsitz untergekommen | wohnort wohnhaft umgezogen eingezogen "
        "bin_nach_*_gezogen neue_wohnung mietwohnung wg miete* zu_hause schlussel eigenheim "
        "altbau* hausboot niedergelassen ausgezogen zusammengezogen bezogen ziehe_nach hingezogen "
        "neue_bleibe eigene_wohnung lebe_in lebe_seit leben_in hier_in_* angekommen_in einzug "
        "sitze_jetzt_in in_ner_wg wohne*"
    ),
    "origin": (
        "geburtsort wurzeln woher ursprunglich kindheit jugend | geburtsort wurzeln ursprunglich "
        "gebürtig* geburtig* gross_geworden kindheit"
    ),
    "employer": (
        "arbeitsplatz betrieb unternehmen berufstatig tatig beschaftigt angestellt "
        "verdient_*_geld wovon_lebt geldverdienen | arbeitsplatz betrieb unternehmen angestellt "
        "eingestellt kundige* kundigung gewechselt befordert schicht* selbststandig neue_stelle "
        "neuer_job probezeit tatig filiale kanzlei praxis_als amt bin_selbstständig selbstständig "
        "selbstandig gegrundet mache_*_auf eroffne* eroffnet fange_*_an angestellt_bei leite "
        "betreibe ubernommen neuen_job versetzt umgeschult umschulung verkaufe repariere "
        "unterrichte auf_eigene_rechnung nebenher jobbe* bei_der_* meine_kund* meine_patient* "
        "meine_schuler* hingeschmissen eingestiegen"
    ),
    "profession": (
        "tatigkeit tatig lebensunterhalt brotchen arbeitet_*_als was_macht_* verdient_*_geld "
        "wovon_lebt was_*_arbeitet als_was was_arbeitet ausbildung lehre macht_beruflich | "
        "*lehrer* *arzt *arztin *pfleger* *schwester *erzieher* *ingenieur* *technik* "
        "*entwickler* *informatiker* *verkaufer* *berater* *meister* *macher* *mechaniker* "
        "*elektriker* *maurer* *maler *malerin *gartner* *bauer *bauerin *landwirt* *friseur* "
        "*florist* *backer* *metzger* *koch *kochin *kellner* *fahrer* *pilot* *polizist* "
        "*feuerwehr* *soldat* *richter* *notar* *steuerberater* *buchhalter* *architekt* "
        "*designer* *grafiker* *fotograf* *journalist* *redakteur* *ubersetzer* *dolmetscher* "
        "*bibliothekar* *apotheker* *hebamme* *physiotherapeut* *therapeut* *psycholog* *biolog* "
        "*chemiker* *physiker* *wissenschaftler* *professor* *dozent* *schneider* *schreiner* "
        "*zimmermann *dachdecker* *schlosser* *optiker* *logopad* *sekretar* *kaufmann *kauffrau "
        "*sachbearbeiter* *leiter *leiterin *azubi* ausbildung_zur ausbildung_zum *student* "
        "*musiker* *schauspieler* *kunstler* *imker* *forster* *winzer* *tierarzt* *zahnarzt* "
        "*anwalt* *hausmeister* *postbot* *trainer* *steward* rente pensionier* ruhestand "
        "bin_selbstständig selbstständig mache_*_auf *meisterin *techniker* *planer* *zeichner* "
        "*arbeiter* *assistent* *betreuer* *helfer* *wirt *wirtin *handler* *beamter *beamtin "
        "*leger* *bauer* *binder* *zieher* *fuhrer* *sprecher* *autor* *texter* *makler* *agent* "
        "*spieler* *tanzer* *sanger* pfarrer* hausfrau hausmann arbeitslos umschulung "
        "*krankenschwester* kinderkrankenschwester* verkaufe repariere unterrichte leite betreibe "
        "berate prufe entwickle entwerfe betreue pflege putze liefere kontrolliere restauriere "
        "installiere ubersetze programmiere behandle forsche untersuche steuere "
        "auf_eigene_rechnung *prufer* *inspektor* *forscher* *tuner* jobbe* optikerin verdiene "
        "ausbildung"
    ),
    "age": (
        "alter wieviel_jahre geburtsjahr | jahre_jung werde_# wurde_# ende_dreissig "
        "mitte_dreissig anfang_dreissig jahrgang"
    ),
    "birthday": (
        "geburtstag_* wann_*_geboren | geburtstag_am werde_# wurde_# geburtstag_habe "
        "feiere_*_geburtstag wird_*_jahre"
    ),
    "food": (
        "gericht* lieblingsessen speise* mahlzeit* ernahrungs* kuche verzicht* | "
        "lieblingsgericht* gericht* brot kase pizza nudel* spatzle kasespatzle suppe eintopf "
        "kartoffel* schnitzel sushi curry obst gemuse reis fisch wurst schokolade eis backe "
        "backen gebacken pflanzlich laktose* gluten* zucker* fasten* rohkost pescetari* rind "
        "schwein* geback kekse frisst esse_kein* kein_fleisch verzichte knodel maultaschen "
        "rouladen bratwurst leberkas brezel* pfannkuchen honig joghurt quark *kuchen *suppe "
        "*salat *brot *wurst *auflauf *braten *torte leibgericht leibspeise lieblingsessen"
    ),
    "drink": (
        "durst* milch | espresso cappuccino milch wasser limo* cola mate schorle whisky gin "
        "schnaps sekt nuchtern kakao trinke_kein* keinen_alkohol milchprodukt* tee* kamillentee "
        "sprudel keinen_tropfen abstinent"
    ),
    "allergy": (
        "vertragt vertragen reagier* meiden verzichten bekommt_*_nicht meiden_muss darf_*_nicht "
        "*allergi* bekommen_nicht vertragt_*_nicht | reagiere ausschlag heuschnupfen niesen "
        "schwillt nicht_essen juckt zoliakie anaphyl* bekomme_*_ausschlag quaddeln pusteln "
        "schwellen anschwellen zugeschwollen juckreiz kratzt nesselsucht atemnot "
        "bekommt_mir_nicht nicht_vertragen unvertraglich* reagiere_* allergolog* *allergi* "
        "pustel* quaddel* schwoll* geschwollen angeschwollen luftnot notaufnahme notarzt "
        "tabu_fur_mich bauchweh krieg_ich_* rote_flecken keine_luft juckt* laktoseintolerant* "
        "nix_fur_mich zugegangen"
    ),
    "health": (
        "leiden schmerz* gesundheitlich* medizinisch* chronisch* verletz* *operation operiert op "
        "knie rucken schulter knochel handgelenk hufte bein magen nacken ellbogen fehlt | leide "
        "schmerzen chronisch* bluthochdruck blutdruck schilddruse* rheuma* arthrose epileps* "
        "anamie depress* angst* burnout schlaflos* neurodermit* tinnitus bandscheib* rucken* "
        "krebs gebrochen verstaucht schwanger* allergie zoliakie gicht reflux adhs legasthen* "
        "horgerat* hexenschuss ischias schwindel kreuzband* meniskus bypass asthmatiker* "
        "diabetiker* herzfehler schlaganfall rollstuhl schwerhorig farbenblind hashimoto "
        "arthritis operiert operier* *operation gerissen angerissen gips gipsarm kruck* orthopad* "
        "mrt rontgen* entzund* gezerrt wehtut abgerutscht bauchweh"
    ),
    "partner": (
        "beziehung lebensgefahrt* familienstand zusammen freund_von liiert vergeben | "
        "meine_freundin mein_freund lebensgefahrt* geschieden scheidung verwitwet witwe* "
        "zusammen_mit verlobte verlobter meine_bessere_halfte heirate* meine_frau mein_mann "
        "verpartnert zusammengezogen unser_hochzeitstag verliebt getrennt schluss_gemacht "
        "schluss_mit_*"
    ),
    "children": (
        "nachwuchs zwillinge stieftochter stiefsohn | nachwuchs zwillinge stieftochter stiefsohn "
        "kleine kleiner alteste alteste* jungste*"
    ),
    "siblings": (
        "bruder schwester brudern schwestern | bruder schwester brudern schwestern "
        "zwillingsbruder zwillingsschwester"
    ),
    "mother": "mutti mami",
    "father": "vati papi",
    "friend": "kumpel beste_freundin bester_freund",
    "relatives": (
        "schwager* schwieger* enkel* patenkind patentante patenonkel stiefvater stiefmutter"
    ),
    "pets": (
        "tierisch* *hund *katze vierbein* | *hund *hunde *hundin *katze *katzen *kater welpe "
        "kaninchen hase hasen ratte* maus mause *fisch fische aquarium gecko schlange echse pony "
        "esel ziege* ente enten papagei* sittich* labrador collie schaferhund mischling mops "
        "bulldogge beagle corgi terrier spaniel igel bartagame huhner *kaninchen *hamster "
        "*schwein *schweine wustenrennmaus* frettchen chinchilla* degu* axolotl frosch* kroten* "
        "chamaleon spinne vogelspinne tauben taube schaf schafe alpaka* lama gans ganse truthahn "
        "nymphensittich* kakadu dogge dalmatiner husky pinscher schnauzer rottweiler windhund "
        "katerchen kitten stubentiger streuner"
    ),
    "leisure": (
        "treibt_* trainier* training aktiv* entspann* vereins* abende feierabend fit fithalt* "
        "bewegt_sich | trainier* training marathon triathlon joggen laufen rudern kajak* surfen "
        "segeln bouldern boxen judo karate fechten bogenschiess* badminton squash basketball "
        "volleyball handball hockey golf kegeln bowling ballett salsa tango pilates skat* "
        "snowboard* tauch* topfer* nahe nahen strick* hakel* stick* bastel* zeichn* imker* "
        "geocach* reite reiten camping campen zelten puzzl* brettspiel* theater* ratsel* sudoku "
        "kochen kraul* kalligraf* aquarell* tischtennis sammle gartel* gartenarbeit pilze vogel* "
        "sternwart* astronomie kegelclub schachclub chor modelleisenbahn ahnenforschung "
        "flohmarkte darts billard skat doppelkopf fit schwimme rudere schwimmen"
    ),
    "music": (
        "musikinstrument* musiziert hort | saxofon saxophon trompete posaune klarinette oboe "
        "harfe ukulele banjo akkordeon ziehharmonika mundharmonika mandoline bratsche bass "
        "kontrabass fagott keyboard orgel trommel* dudelsack querflote blockflote geigen sopran "
        "alt tenor bariton jazz rock metal techno klassik spiele_in *flote *horn tuba hackbrett "
        "zither cembalo xylofon blasinstrument* blaskapelle singkreis"
    ),
    "film": "kino gesehen schaut | kino",
    "series": (
        "serie serien fernsehen schaut | serie serien staffel folge* netflix tatort dokus fernsehen"
    ),
    "book": "lektur* krimi* gedicht* literatur gelesen | krimi* gedicht* lektur* gelesen thriller",
    "favourite": (
        "bevorzugt_* schatzt_*_meisten mag_*_am besonders_gern bestes am_meisten lieber | "
        "liebling* liebe am_meisten am_besten uber_alles konnte_*_jeden_tag fan_von grosser_fan "
        "nichts_geht_uber besonders_gern mein_absolut* meine_absolut*"
    ),
    "dislike": (
        "nicht_mag hasst mag_nicht mag_*_nicht nervt verabscheut abneig* stort ausstehen "
        "leiden_kann zuwider ekel* nicht_gern gar_nicht_* | hasse mag_kein* nervt verabscheu* "
        "kann_*_nicht_leiden nicht_ausstehen mag_*_nicht graut gestohlen_bleiben gar_nicht jagen "
        "davonlaufen graust ekel* eklig widerlich zuwider nichts_fur_mich nix_fur_mich verschon* "
        "nicht_mein_ding nicht_meins ode nervig furchtbar grauenhaft hass schrecklich pfui igitt "
        "bleib*_mir_weg unertraglich"
    ),
    "languages": (
        "fremdsprache* beherrscht muttersprachl* | beherrsche englisch franzosisch spanisch "
        "italienisch portugiesisch russisch chinesisch japanisch niederlandisch schwedisch "
        "polnisch turkisch arabisch danisch norwegisch fliessend plattdeutsch"
    ),
    "contact": "telefonisch | anrufen whatsapp",
    "wedding": (
        "standesamt trau* heiratet | standesamt hochzeit* verlobung flitterwochen ja-wort heiraten"
    ),
    "travel": (
        "urlaubsziel reiseziel fliegt fahrt_*_hin wohin ausflug geflogen flugzeug geht_es_hin | "
        "urlaub* gebucht ausflug kreuzfahrt wohnmobil rundreise radtour wanderurlaub verreisen "
        "fluge zugfahrt hutte gehts_*_nach geht's_*_nach geht_es_*_nach fahren_*_nach "
        "fahre_*_nach fliegen_*_nach nachtzug zug_nach flug_nach auf_nach flugzeug geflogen "
        "zelten"
    ),
    "commute": (
        "kommt_*_arbeit weg_zur_arbeit verkehrsmittel fortbewegt unterwegs | strassenbahn u-bahn "
        "s-bahn bus zug radle rad e-bike roller zu_fuss lastenrad"
    ),
    "study": (
        "studiengang studienfach schulform abschluss hochschulabschluss einschreib* | studier* "
        "semester master bachelor promotion promovier* abitur abschluss doktorarbeit masterarbeit "
        "bachelorarbeit lehre azubi einschreib* immatrikul* vorlesung* abi nachholen semester*"
    ),
    "style": (
        "antworten_gestaltet wunscht_*_antworten antwortlange tonfall stil anrede schreibstil "
        "formatier* lang_*_antworten lange_durfen gewunscht antworten_*_aussehen wie_antworten "
        "geschrieben_werden schreibweise einheit* ansprache du_oder_sie antwort nachrichten "
        "einheit | knapp stichpunkt* stichwort* ohne_emojis keine_emojis hoflich formlich locker "
        "verzichte tabelle* einfach* sprache metrisch siezen erklar* vermeide lass "
        "24-stunden-format 24-stunden stichpunkte* kurz_und_knapp direkt_zum_punkt "
        "ohne_umschweife celsius kilometer satzen halte_dich fasse_dich aufzahlung* nummeriert "
        "beispiele quellen fachbegriffe vornamen"
    ),
    "plans": "vorhaben vorhat geplant demnachst plant_* | vorhaben geplant habe_vor demnachst",
    "car": (
        "motorrad roller mobil fahrzeugtyp fahrzeug* unterwegs | motorrad roller passat polo audi "
        "mercedes renault peugeot fiat volvo mazda hyundai kia tesla dacia seat volkswagen "
        "elektroauto fuhrerschein kombi moped e-auto camper *bus bulli gebrauchtwagen leasing "
        "nissan suzuki smart cabrio transporter lastenrad fahrrad *rad e-bike pedelec"
    ),
    "appointment": (
        "arztbesuch wann_*_zahnarzt wann_muss verabredet vorstellungsgesprach | zahnarzttermin "
        "kontrolltermin vorstellungsgesprach um_#:#_uhr um_#.# *termin vorsorge mrt rontgen "
        "impfung impftermin blutabnahme *untersuchung"
    ),
    "medication": (
        "arznei* pille* mittel behandel* | arznei* pille spray insulin tropfen salbe ibuprofen "
        "antibiotik* spritze* thyroxin *hemmer mg schlucke tablette* einnehme nehme_*_ein "
        "verschrieben"
    ),
    "phone": "rufnummer erreicht_man anrufen | rufnummer mobil",
    "device": (
        "handy smartphone laptop computer rechner tablet gerat betriebssystem | iphone android "
        "samsung pixel laptop macbook thinkpad computer rechner tablet ipad linux windows xiaomi "
        "smartphone fairphone nokia huawei motorola oppo oneplus honor realme xperia redmi"
    ),
    "learning": (
        "beibringen bringt_*_bei unterricht kursus angemeldet | vhs volkshochschule gelernt "
        "sprachkurs anfangerkurs belege unterricht bringe_mir angemeldet ube *kurs lern lern_grad"
    ),
    "smoking": (
        "zigaretten nikotin rauchen | zigaretten nikotin nichtraucher* vape geraucht rauchen "
        "zigarett* kippe* schachtel* qualm* nikotin*"
    ),
    "author": "dichter* schreibt | schriftsteller* autor* dichter* bucher_von romane_von",
    "singer": "kunstler* musiker* gruppe | konzert album lieder",
    "team": (
        "verein mannschaft fan drückt_*_daumen anfeuer* fussballverein | verein mannschaft fan "
        "dauerkarte stadion hsv bvb bayern schalke fussball* anfeuer*"
    ),
    "game": (
        "videospiel* computerspiel* spiel konsole zockt spiele spielt_am | videospiel* zocke "
        "playstation xbox switch nintendo konsole minecraft domino skat doppelkopf schach "
        "karten_spiel* rommé"
    ),
    "colour": "farbe farben lieblingsfarbe | lieblingsfarbe farbe",
    "fear": (
        "angst fürchtet phobie furchtet furchten schreckt bammel furcht | angst fürchte phobie "
        "panik grusel* furchte hohenangst platzangst flugangst spinnen gruselt erschreck* schiss "
        "bammel furcht graut"
    ),
    "goal": (
        "ziel ziele traum traumt wunsch* | ziel traum traume_davon spare_auf wunsche_mir irgendwann"
    ),
    "doctor": (
        "hausarzt zahnarzt arztin arzt therapeut* facharzt | hausarzt hausarztin zahnarzt "
        "zahnarztin arztin dr therapeut* orthopad* hautarzt* hautarztin kardiolog* gynakolog* "
        "augenarzt* kieferorthopad* physiotherapie"
    ),
    "sleep": "schlaf* aufsteh* bett | schlaf* stehe_*_auf wecker fruhaufsteher* nachteule",
    "money": (
        "verdient gehalt einkommen budget miete | verdiene gehalt einkommen budget euro_im_monat "
        "netto brutto"
    ),
    "religion": (
        "religion glaube* konfession kirche | katholisch evangelisch muslim* moslem* jude* "
        "judisch buddhis* atheist* kirche moschee ramadan"
    ),
    "size": (
        "gross grosse wiegt gewicht schuhgrosse blutgruppe | gross_bin cm kilo kg wiege "
        "schuhgrosse blutgruppe"
    ),
    "software": (
        "programm* software app werkzeug editor browser | programm software app excel vim python "
        "java photoshop"
    ),
    "project": (
        "projekt* arbeitet_an schreibt_an baut | projekt* arbeite_an schreibe_an baue_gerade"
    ),
    "collection": "sammelt sammlung | sammle sammlung",
    "volunteering": (
        "ehrenamt* freiwillig* engagier* | ehrenamt* freiwillig* engagier* tafel tierheim"
    ),
    "garden": (
        "garten pflanz* balkon | garten pflanz* balkon tomaten rosen krauter hochbeet "
        "schrebergarten"
    ),
    "deadline": "frist abgabe prufung | frist abgabe abgeben prufung klausur",
    "diet": (
        "ernahr* vegetari* vegan* fleisch isst_*_fleisch fisch | vegetari* vegan* pescetari* "
        "fleisch fisch koscher halal gluten* laktose* pflanzlich lebe_*_vegan esse_kein* "
        "kein_fleisch verzichte zucker kase milchprodukt*"
    ),
    "sport": (
        "sport sportart* treibt trainier* | trainier* training marathon triathlon joggen jogg* "
        "laufe lauf* schwimm* rudern kajak* surfen segeln klett* kletter* bouldern boxen judo "
        "karate fechten bogenschiess* badminton squash basketball volleyball handball hockey golf "
        "kegeln pilates yoga skat* snowboard* tauch* tennis fussball ski radfahren radle "
        "tischtennis turn* wander*"
    ),
    "email": "e-mail-adresse mailadresse e-mailadresse emailadresse |",
    "delivery": (
        "paket* lieferung* geliefert* lieferadresse versandt bestellung* | schick* liefer* paket* "
        "bestellung*"
    ),
    "nickname": (
        "spitzname* rufname* genannt_werden nennen ansprechen | nenn_mich nenne_mich nennt_mich "
        "nennen_mich ruft_mich rufen_mich spitzname*"
    ),
    "neighbour": "nachbar nachbarin nachbarn nachbarinnen",
    "relation": "wer_ist wer_sind |",
}
