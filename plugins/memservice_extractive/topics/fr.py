"""French."""

from __future__ import annotations

CUES = {
    "home": (
        "habite habites habitons vit vis vivons maison appartement adresse demenage* loge "
        "domicile reside"
    ),
    "origin": (
        "vient_de viens_de origine ne_a nee_a grandi natif native | viens_de origine ne_a "
        "nee_a grandi"
    ),
    "employer": (
        "travaille travailler travaillons travail emploi entreprise employeur bureau quitte "
        "embauche* commence_a"
    ),
    "profession": (
        "metier profession fait_dans_la_vie | metier profession je_suis_infirmi* "
        "je_suis_medecin je_suis_professeur* je_suis_ingenieur* je_suis_avocat* "
        "je_suis_etudiant* je_suis_developpeu* travaille_comme retraite*"
    ),
    "age": "quel_age age ans | j'ai_#_ans #_ans eu_#",
    "birthday": (
        "anniversaire naissance ne_le nee_le date_d'anniversaire | anniversaire naissance nee_le"
    ),
    "food": (
        "mange manger mangent mangeons nourriture repas regime vegetari* vegan* vegetalien* "
        "viande porc cuisine | mange mangeons regime vegetari* vegan* viande porc repas"
    ),
    "drink": "boit bois boire boisson* the cafe vin biere alcool jus",
    "allergy": "allerg* intoleran* | allerg* intoleran* pas_de_penicilline",
    "health": "malad* sante medicament* diagnos* asthme diabet* migraine* operation",
    "partner": (
        "mari femme epoux epouse conjoint* compagn* copain copine fiance* marie mariee celibataire"
    ),
    "children": "enfant enfants fils fille filles bebe",
    "mother": "mere maman",
    "father": "pere papa",
    "parents": "parents",
    "brother": "frere freres",
    "sister": "soeur soeurs",
    "siblings": "fratrie",
    "grandparents": "grand-mere grand-pere grands-parents mamie papi",
    "relatives": "tante oncle cousin cousine neveu niece famille",
    "friend": "ami amie amis amies",
    "boss": "chef patron patronne",
    "colleague": "collegue*",
    "pets": (
        "animal animaux chien chienne chat chatte chats lapin perroquet cheval race possede | "
        "animal animaux chien chienne chat chatte chats lapin perroquet cheval tortue canari "
        "hamster lapine"
    ),
    "leisure": (
        "loisir* temps_libre passe-temps hobby sport sports week-end | loisir* temps_libre "
        "sport escalade joue jouer nage natation cours_a_pied courir danse peins yoga tennis "
        "football echecs peche ski randonnee samedi dimanche grimpe grimper"
    ),
    "music": (
        "instrument* musique groupe chorale | joue_du joue_de guitare piano violon groupe "
        "chorale chante"
    ),
    "film": "film films cinema",
    "book": "livre livres roman lire lis lit",
    "favourite": "prefere* favori*",
    "languages": (
        "langue langues parle parlent | parle parlons langue* en_francais en_anglais "
        "en_allemand en_espagnol"
    ),
    "contact": (
        "contacter joindre | joindre email e-mail mail telephone @address m'ecrire m'appeler"
    ),
    "wedding": "mariage se_marie marier noces | mariage marions marie marier",
    "travel": (
        "vacances voyage voyages part voyager | vacances voyage voyageons partons pars voyager"
    ),
    "commute": (
        "au_travail va_travailler au_bureau moyen_de_transport deplace | au_travail au_bureau "
        "velo deplace"
    ),
    "study": "etudie etudes universite ecole | etudie etudes universite",
    "style": (
        "dois-je repondre lui_repondre | toujours jamais merci répondre réponds tutoyer "
        "appelle-moi court désormais"
    ),
    "plans": "projet projets prevoit | projet projets prevois vais allons",
    "car": "voiture conduit vehicule | voiture conduis renault peugeot citroen",
    "appointment": "rendez-vous | rendez-vous rdv",
    "medication": "medicament* traitement prend | medicament* comprime* je_prends",
    "email": "email e-mail mail courriel | @mail mail",
    "phone": "telephone numero portable joindre | @number numero",
    "learning": "apprend etudie cours | apprends cours",
    "smoking": "fume fumeu* | fume clope*",
    "author": "auteur* ecrivain*",
    "singer": "chanteu* groupe",
}
WEAK = (
    "prochain prochaine utilisateur utilisatrice nom noms s'appelle s'appellent appelle "
    "appellent aime aiment adore prefere maintenant actuellement aujourd'hui souvent encore "
    "toujours dis sait personne gens chose utilise veut besoin nouveau nouvelle jour temps va "
    "fait faire quel quelle quels quelles combien mois an meilleur type pense trouve avis "
    "opinion possede joue pratique souffre porte exactement date annee actuel a-t-il a-t-elle "
    "est-il est-elle a"
)
SUBJECT = "je j nous"
UNREAL = (
    "si_j'etais si_j'avais si_je si_nous imagine imaginez imaginons supposons dans_mon_histoire "
    "dans_mon_roman "
    "le_heros l'heroine mon_personnage j'ai_reve si_j'*ais si_on_*ait protagoniste heroine "
    "personnage dans_le_roman dans_le_film dans_la_piece dans_la_serie dans_un_roman mon_roman "
    "une_nouvelle_ou mon_heros mon_heroine j'ecris_un_roman j'ecris_une_histoire dans_le_livre "
    "dans_la_bd dans_le_polar je_blague je_plaisante je_rigole je_deconne"
)
PERSON = "je j moi mon ma mes nous notre nos il elle son sa ses lui leur leurs ils elles tu vous"
NAME = r"(?:[Jj]e m['’]appelle|[Mm]on nom est|[Jj]e suis|[Mm]oi,? c['’]est) ([A-ZÀ-Þ]\w+)"
