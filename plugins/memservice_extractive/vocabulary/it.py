"""Italian."""

from __future__ import annotations

CUES = {
    "home": (
        "citta quartiere paese residenza risiede risiedo domicilio stabilit* affitt* quale_citta "
        "| citta quartiere risiedo domicilio trasferit* affitt* stabilit* casa_nuova nuova_casa "
        "trilocale bilocale monolocale coinquilin* comprato_casa preso_casa convivo "
        "ci_siamo_trasferit* preso_in_affitto andato_a_vivere andata_a_vivere andati_a_vivere "
        "vivo_con nuovo_appartamento casa_mia mi_sono_stabilit* sto_a_* vivo_a"
    ),
    "origin": (
        "originari* provenienza proviene radici luogo_di_nascita infanzia | originari* radici "
        "provengo sono_nat* infanzia sono_cresciut*"
    ),
    "employer": (
        "datore impresa negozio posto_di_lavoro occupat* dipendente si_guadagna guadagna_*_vivere "
        "| impresa negozio posto assun* licenzi* dimess* promoss* promozione nuovo_lavoro turno "
        "turni contratto stage tirocinio partita_iva fabbrica ospedale gestisco dirigo aperto_un "
        "aperto_una apro mi_sono_licenziat* cambiato_lavoro nuovo_impiego lavoro_presso lavoro_in "
        "mia_attivita in_proprio disoccupat* vendo riparo mi_hanno_pres* i_miei_clienti "
        "i_miei_pazienti licenziat*"
    ),
    "profession": (
        "mestiere di_cosa_si_occupa occupazione si_guadagna fa_nella_vita che_lavoro ruolo "
        "guadagna_*_vivere guadagna | sono_architett* sono_commercialista sono_giornalista "
        "sono_dentista sono_pompiere sono_poliziott* sono_pilota sono_idraulic* sono_falegname "
        "sono_pittore sono_panettier* sono_parrucchier* sono_autista sono_tradut* sono_fotograf* "
        "sono_grafic* sono_psicolog* sono_veterinari* sono_farmacista sono_maestr* sono_agricolt* "
        "sono_muratore sono_attore sono_attrice sono_music* sono_biolog* sono_chimic* "
        "sono_segretari* sono_commess* sono_fisioterapist* sono_ostetric* sono_cuoc* "
        "sono_camerier* sono_meccanic* sono_elettricist* sono_tecnic* insegno insegnante "
        "infermier* architetto giornalista programmator* sviluppator* panettier* parrucchier* "
        "idraulico falegname fornai* pasticcer* sarta sarto bibliotecari* fiorai* postin* "
        "come_commess* apicolt* impiegat* di_professione tassista macchinista professoressa "
        "professore maestra gestisco dirigo faccio_l'* faccio_lo lavoro_da sono_*ista sono_*logo "
        "sono_*loga sono_*grafo sono_*grafa sono_*tore sono_*trice sono_*iere sono_*iera "
        "sono_*aio sono_*aia sono_chef sono_giudice casaling* disoccupat* geometra vendo riparo "
        "costruisco progetto guido_il guido_i traduco programmo curo pulisco consegno ispeziono "
        "restauro installo mi_occupo i_miei_clienti mi_hanno_pres* in_proprio studio_i"
    ),
    "age": (
        "eta anni_ha quanti_anni_* | anni_compiuti compio_# compiro_# ne_ho_# trentina quarantina"
    ),
    "birthday": "data_di_nascita quando_e_nat* compie | compio_# mio_compleanno nato_il nata_il",
    "food": (
        "piatto piatti alimentare alimentazione dolce colazione cena pranzo evita cucina ricetta "
        "| piatto pasta pizza riso risotto lasagne pane formaggio zuppa minestrone gelato "
        "cioccolato pesce frutti_di_mare verdur* frutta pollo maiale manzo torta tiramisu "
        "parmigiana gnocchi polenta sushi cena colazione pranzo lattosio glutine celiac* digiuno "
        "non_mangio_piu smesso_di_mangiare eliminato latticini legumi piadina focaccia carbonara "
        "arancini cannoli"
    ),
    "drink": (
        "berne latte | espresso cappuccino tisana latte acqua birre prosecco spritz grappa rum "
        "whisky limonata astemi* analcolic* non_bevo smesso_di_bere senza_alcol cioccolata "
        "limoncello amaro neanche_un_goccio"
    ),
    "allergy": (
        "tollera reazione evitare non_puo_mangiare fa_male puo_*_mangiare vietat* non_digerisce "
        "non_puo_*_mangiare sta_male problema_*_cibo | tollero reazione gonfia* orticaria "
        "non_posso_mangiare celiac* starnut* raffreddore_da_fieno fanno_venire fa_venire "
        "mi_gonfi* prurito pizzica bolle macchie starnutisc* mi_fa_male mi_fanno_male vietat* "
        "asma_da shock allergologo gonfio gonfia gonfie mi_si_chiude mi_si_gonfia la_gola "
        "le_labbra la_lingua pronto_soccorso soffoc* intollerant* pomfi sfogo evitare_il "
        "evitare_la"
    ),
    "health": (
        "problema_di_salute problemi_di_salute patologia dolori soffre_* intervento operano "
        "ginocchio schiena spalla caviglia polso anca gamba braccio stomaco collo gomito | soffro "
        "dolore mal_di ipertensione pressione tiroide artrite epiless* anemi* depress* ansia "
        "insonnia cancro tumore ernia sciatica rotto slogat* frattura incinta colesterolo celiac* "
        "dermatite psoriasi dislessi* apnea vertigini apparecchio_acustico reflusso asmatic* "
        "diabetic* epilettic* infarto ictus sedia_a_rotelle sord* daltonic* operano operar* "
        "intervento rotta frattur* gesso stampelle fisioterap* ortoped* menisco legament*"
    ),
    "partner": (
        "stato_civile relazione coniuge sta_con sentimental* sta_insieme | divorziat* separat* "
        "vedov* il_mio_ex mio_ex mia_ex convivente sto_con fidanzat* ragazzo ragazza mia_moglie "
        "mio_marito sposati_da stiamo_insieme insieme_da innamorat* e_finita finita_con lasciat*"
    ),
    "children": (
        "prole gemelli gemelle bimbo bimba figli* bimb* bambin* | gemelli gemelle bimbo bimba "
        "bimbi primogenit* piccola piccolo maggiore figli* bimb* bambin*"
    ),
    "siblings": "fratello sorella sorelle | fratello sorella sorelle gemello gemella",
    "relatives": (
        "cognat* suocer* nipoti nipotin* genero nuora padrino madrina patrigno matrigna nipot* "
        "cugin*"
    ),
    "friend": "miglior_amico migliore_amica",
    "pets": (
        "animali_da_compagnia cucciolo | cucciol* gattino cagnolin* labrador barboncino bassotto "
        "meticcio beagle coniglietto porcellino cavia pappagall* iguana serpente pesci "
        "pesce_rosso acquario asino capra capre gallin* anatr* topo ratto siamese furetto "
        "levriero pappagalli cocorita cocorite calopsite furett* porcellini_d'india gerbillo "
        "cincilla riccio axolotl rana rospo camaleonte tarantola piccione piccioni pecora pecore "
        "alpaca maiale maialino pony oca oche dalmata husky chihuahua pastore_tedesco golden "
        "setter gattini cuccioli micio adott* mulo mucca cavalla"
    ),
    "leisure": (
        "tempo_libero attivita allena esercizio svago rilassa interessi si_diverte fa_per_hobby "
        "in_forma passione per_passione | mi_alleno allenamento palestra maratona nuotare corsa "
        "ciclismo bici escursion* trekking cammin* montagna vela surf canottaggio pallavolo "
        "basket rugby golf pugilato boxe judo karate scherma pattin* sciare sci sub immersioni "
        "ceramica cucire cucito maglia uncinetto ricam* disegn* fotograf* teatro zumba pilates "
        "salsa tango ballare orto giardin* puzzle cruciverba campeggio funghi pescare acquerell* "
        "calligrafia bocce equitazione cucinare padel modellismo coro freccette biliardo "
        "genealogia colleziono gruppo_di_lettura burraco in_forma"
    ),
    "music": (
        "genere ascolta suonare | sassofono tromba trombone clarinetto oboe arpa ukulele "
        "fisarmonica armonica batteria basso contrabbasso violoncello flauto organo tastiera "
        "tamburo mandolino pianoforte jazz rock lirica soprano tenore suono_il suono_la suono_l'* "
        "corno tuba fagotto clavicembalo xilofono banda cornamusa zampogna"
    ),
    "film": "pellicola",
    "series": "serie televisione tv guarda | serie stagione puntat* netflix",
    "book": "lettura autore_di poesia letteratura | letto leggendo lettura poesi* giall* rileggo",
    "favourite": (
        "ama_di_piu piace_di_piu adora migliore | adoro amo di_piu vado_matt* impazzisco migliore "
        "mi_piace_tantissimo non_mi_stanco meglio_di appassionat* tifos*"
    ),
    "dislike": (
        "non_le_piace non_gli_piace odia detesta non_sopporta infastidisce schifo disgust* "
        "piace_meno sopporta | non_mi_piace odio detesto non_sopporto mi_infastidisce schifo "
        "fa_schifo che_schifo non_reggo non_tollero non_fa_per_me ribrezzo disgust* lo_odio "
        "la_odio li_odio le_odio insopportabile orribile neanche_mort* non_mi_va mi_irrita "
        "piuttosto_che"
    ),
    "languages": (
        "madrelingua straniera bilingue | inglese francese tedesco spagnolo portoghese russo "
        "cinese giapponese arabo olandese madrelingua bilingue me_la_cavo"
    ),
    "contact": "contattare scrivere chiamare | whatsapp scrivimi chiamami",
    "wedding": (
        "sposera sposa cerimonia fidanzamento | ci_sposiamo luna_di_miele proposta sposati nozze "
        "si_sposa"
    ),
    "travel": (
        "viaggio_* meta paese visitare dove_andra vacanze_* gita volato aereo dove_va | prenotat* "
        "biglietti crociera zaino gita volo treno_per settimana_a settimana_in andremo andiamo_in "
        "parto in_ferie ferie vado_in aereo tenda scappata"
    ),
    "commute": (
        "va_al_lavoro raggiunge_il_lavoro mezzo_di_trasporto sposta* si_muove si_sposta mezzo | "
        "bici metro tram autobus treno a_piedi monopattino pendolare in_bici in_bicicletta "
        "in_moto scooter"
    ),
    "study": (
        "laurea facolta corso_di_laurea iscritt* scuola liceo | laurea laureat* facolta master "
        "dottorato tesi liceo iscritt* semestre iscri* diploma"
    ),
    "style": (
        "risposta risposte tono stile lunghezza dare_del_tu dare_del_lei formato rivolgersi "
        "lingua_*_rispondere come_vuole in_che_forma in_che_modo come_*_rispondere "
        "come_*_scrivere formato_* unita_di_misura messaggi unita bisogna_rispondere | breve "
        "concis* dammi_del_tu del_tu del_lei senza_emoji emoji formale informale elenco elenchi "
        "tabelle evita diretto semplice in_italiano elenchi_puntati punti celsius chilometri "
        "senza_giri al_dunque al_sodo numerat* esempi fonti una_frase due_frasi tre_frasi "
        "nome_di_battesimo frasi_brevi"
    ),
    "plans": "intende intenzione | intendo prossim* ho_in_programma",
    "car": (
        "moto motorino veicolo guida_* mezzo | moto motorino vespa scooter alfa lancia audi bmw "
        "ford opel renault peugeot citroen dacia tesla volkswagen golf hyundai kia elettrica "
        "patente camper furgone roulotte suzuki nissan volvo mini jeep skoda seat bici bicicletta "
        "monopattino giro_con giro_in mi_sposto_* mi_muovo_*"
    ),
    "appointment": (
        "dentista_quando medico_quando colloquio controllo | dentista controllo colloquio alle_# "
        "analisi radiografia risonanza vaccino ecografia"
    ),
    "medication": (
        "cura terapia compress* | compress* inalatore insulina antibiotic* ibuprofene tachipirina "
        "sciroppo gocce mg iniezion* terapia antistaminic* prescritto pastigli* pillol*"
    ),
    "phone": "cellulare numero_* chiamare | cellulare",
    "device": (
        "telefono_usa cellulare_usa computer portatile dispositivo tablet smartphone che_telefono "
        "| iphone android samsung computer portatile macbook tablet ipad xiaomi pixel windows "
        "linux smartphone fairphone nokia huawei motorola oppo oneplus honor realme xperia redmi"
    ),
    "learning": (
        "imparare lezioni iscritt* sta_studiando imparando lezion* | imparando iscritt* lezione "
        "lezion* ho_cominciato ho_iniziato"
    ),
    "smoking": "fumare sigarett* tabacco svapa fumator* | fumare svapo smesso_di_fumare sigarett*",
    "author": "scrittori poeta romanziere | scrittor* scrittrice poeta autore autrice",
    "singer": "artista musicista band | cantante concerto album canzon* band",
    "team": "squadra tifa tifos* club | squadra tifo tifos* juve inter milan napoli roma partita",
    "game": (
        "videogioc* console gioco gioca giocare | videogioc* console playstation xbox nintendo "
        "switch minecraft briscola scopa scacchi carte burraco domino bocce"
    ),
    "colour": "colore colori | colore",
    "fear": (
        "paura teme fobia spaventa terrore spaventano | paura temo fobia panico spaventa "
        "terrorizza ho_paura mi_fa_paura mi_fanno_paura vertigini claustrofob* ragni altezze "
        "terrore fifa"
    ),
    "goal": (
        "obiettivo sogno sogna meta ambizione | obiettivo sogno mio_sogno risparmiando un_giorno"
    ),
    "doctor": (
        "dentista medico_di_base medico dottor* terapeuta | dentista medico dottor* dottoressa "
        "terapeuta dermatolog* cardiolog* ginecolog* oculista ortopedic* pediatra ortodontista"
    ),
    "sleep": (
        "dorme dormire sveglia alza letto | dormo dormire sveglio sveglia mi_alzo nottambul* "
        "mattinier*"
    ),
    "money": (
        "guadagna stipendio budget reddito affitto | guadagno stipendio budget al_mese euro affitto"
    ),
    "religion": (
        "religione religios* crede chiesa | cattolic* musulman* ebre* buddist* ate* protestante "
        "chiesa moschea"
    ),
    "size": (
        "alto alta altezza pesa peso numero_di_scarpe taglia gruppo_sanguigno | sono_alt* altezza "
        "peso chili taglia porto_il_# gruppo_sanguigno"
    ),
    "software": (
        "programma software applicazione strumento editor | programma software app excel python "
        "java photoshop"
    ),
    "project": "progetto progetti scrivendo lavorando | progetto progetti scrivendo tesi",
    "collection": "colleziona collezione raccogli* | colleziono collezione raccolgo",
    "volunteering": "volontari* associazione | volontari* associazione canile",
    "garden": (
        "giardino piante orto balcone coltiva | giardino piante orto balcone coltivo pomodori"
    ),
    "deadline": "scadenza consegna esame | scadenza consegna consegnare esame",
    "diet": (
        "dieta vegetarian* vegan* carne alimentare mangia_*_carne formaggio | vegetarian* vegan* "
        "carne pesce glutine lattosio celiac* dieta halal kosher non_mangio_piu "
        "smesso_di_mangiare eliminato latticini zucchero"
    ),
    "sport": (
        "sport allena esercizio | mi_alleno allenamento palestra maratona nuoto nuotare corro "
        "correre corsa ciclismo bici escursion* trekking arrampic* vela surf canottaggio "
        "pallavolo basket rugby golf pugilato boxe judo karate scherma pattin* sciare sci "
        "immersioni tennis calcio padel yoga pilates"
    ),
    "email": "indirizzo_e-mail indirizzo_email indirizzo_di_posta indirizzo_mail |",
    "delivery": "pacco pacchi spedi* consegn* ordini",
    "nickname": (
        "soprannome nomignolo chiamarlo chiamarla | chiamami mi_chiamano soprannome nomignolo"
    ),
    "neighbour": (
        "vicino_di_casa vicina_di_casa vicini_di_casa | vicino_di_casa vicina_di_casa "
        "vicini_di_casa mio_vicino mia_vicina i_vicini"
    ),
    "relation": "chi_e chi_sono |",
    "mother": "",
    "father": "babbo",
}
