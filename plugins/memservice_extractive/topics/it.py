"""Italian."""

from __future__ import annotations

CUES = {
    "home": (
        "vive vivo viviamo vivere abita abito abitiamo casa appartamento indirizzo trasferit* "
        "trasferisco trasloc*"
    ),
    "origin": (
        "viene_da vengo_da origine nato nata cresciut* | vengo_da sono_di origine nato nata "
        "cresciut*"
    ),
    "employer": (
        "lavora lavoro lavoriamo lavorare impiego azienda ditta ufficio lasciato iniziato "
        "assunt* lavora_ancora | lavora lavoro lavoriamo lavorare impiego azienda ditta "
        "ufficio lasciato iniziato assunt* in_pensione pensione"
    ),
    "profession": (
        "professione mestiere | professione lavoro_come faccio_il faccio_la sono_infermier* "
        "sono_insegnante sono_ingegnere sono_medico sono_avvocat* sono_student* pensionat*"
    ),
    "age": "quanti_anni eta | ho_#_anni #_anni compiuto",
    "birthday": "compleanno nato nata nascita | compleanno nato nata nascita compio gli_anni",
    "food": (
        "mangia mangio mangiare cibo carne dieta vegetarian* vegan* | mangio mangia dieta "
        "carne vegetarian* vegan* cucino"
    ),
    "drink": "beve bevo bere bevanda bevande caffe vino birra alcol succo",
    "allergy": "allerg* intolleran*",
    "health": (
        "malat* salute medicin* diagnos* asma diabet* emicrania operazione disturbo soffre "
        "malattia | malat* salute medicin* diagnos* asma diabet* emicrania operazione artrosi "
        "soffro dolori"
    ),
    "partner": "marito moglie compagno compagna fidanzat* sposat* partner",
    "children": "figlio figli figlia figlie bambino bambini bambina bambine",
    "mother": "madre mamma",
    "father": "padre papa",
    "parents": "genitori",
    "brother": "fratello fratelli",
    "sister": "sorella sorelle",
    "siblings": "fratelli",
    "grandparents": "nonna nonno nonni",
    "relatives": "zia zio cugino cugina nipote famiglia",
    "friend": "amico amica amici amiche",
    "boss": "capo",
    "colleague": "colleg*",
    "pets": (
        "animale animali domestic* cane cani gatto gatta gatti coniglio pappagallo cavallo "
        "razza | animale animali domestic* cane cani gatto gatta gatti coniglio pappagallo "
        "cavallo canarino tartaruga criceto pappagallino"
    ),
    "leisure": (
        "hobby tempo_libero passatemp* sport pratica fine_settimana | hobby tempo_libero sport "
        "gioco giocare giochiamo tennis calcio arrampic* nuoto corro correre ballo dipingo "
        "yoga scacchi pesca sabato domenica"
    ),
    "music": (
        "strument* suona musica banda coro | suono suona chitarra pianoforte violino coro canto"
    ),
    "film": "film cinema",
    "book": "libro libri romanzo leggere leggo legge",
    "favourite": "preferit*",
    "languages": "lingua lingue parla parlare | parlo parla lingua lingue",
    "contact": "contatt* | email e-mail telefono @address scrivermi chiamarmi contattarmi",
    "wedding": "matrimonio nozze si_sposa sposarsi | matrimonio sposiamo sposo sposarmi",
    "travel": (
        "vacanza vacanze viaggio viaggi viaggia destinazione | vacanza vacanze viaggio "
        "viaggiamo partiamo andiamo_a vado_a"
    ),
    "commute": "al_lavoro in_ufficio | al_lavoro in_ufficio bicicletta",
    "study": "studia studio studi universita scuola | studio studiato universita",
    "style": (
        "devo_rispondere rispondere | sempre mai per_favore rispondi rispondimi chiamami brevi"
    ),
    "plans": "piani progetti programma | piano piani progetti",
    "car": "auto automobile macchina guida veicolo | macchina auto guido panda yaris fiat toyota",
    "appointment": "appuntamento visita | appuntamento visita alle_#",
    "medication": (
        "medicina medicine farmaco farmaci assume prende | pastiglia pastiglie prendo medicina "
        "cardioaspirina"
    ),
    "email": "email e-mail mail posta | @mail mail",
    "phone": "telefono numero cellulare telefonico recapito | @number numero",
    "learning": "impara studia corso frequenta artistica | imparo corso lezioni",
    "smoking": "fuma fumatore fumatrice | fumo sigarette",
    "author": "autore scrittore scrittrice",
    "singer": "cantante gruppo",
}
WEAK = (
    "prossimo prossima utente nome chiama chiamano chiamo piace piacciono ama preferisce "
    "preferisco adesso ora attualmente oggi spesso ancora dimmi sa persona gente cosa usa vuole "
    "nuovo nuova giorno tempo va fa fare ha ho hanno migliore tipo quale quali quanto quanti "
    "mese pensa ritiene crede opinione possiede suona pratica soffre porta esattamente data "
    "anno muove"
)
SUBJECT = "io noi"
UNREAL = (
    "se_fossi se_avessi immagina immaginati immaginiamo supponiamo nella_mia_storia "
    "nel_mio_romanzo il_protagonista "
    "il_mio_personaggio ho_sognato se_*ssi se_*ssimo se_mi_*sse se_potessi protagonista "
    "personaggio eroina nel_romanzo nel_film nella_serie mio_romanzo mio_racconto "
    "scrivo_un_racconto sto_scrivendo_un_* mio_eroe nel_libro nel_racconto facciamo_finta "
    "scherzo scherzavo sto_scherzando"
)
PERSON = ""
NAME = r"(?:[Mm]i chiamo|[Ii]l mio nome è|[Ss]ono|[Qq]ui è) ([A-ZÀ-Þ]\w+)"
