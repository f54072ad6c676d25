"""French."""

from __future__ import annotations

CUES = {
    "home": (
        "ville quartier residence logement installe* lieu_de_residence demeure* quelle_ville | "
        "ville quartier emmenage* installe* loue appart studio colocation coloc logement "
        "nouvel_appart maison_a habite_a vient_d'emmenager viens_d'emmenager on_a_demenage "
        "nous_avons_emmenage aménag* amenage pose_mes_valises pose_nos_valises nouvelle_maison "
        "notre_maison emmenag* on_est_a_* debarque*"
    ),
    "origin": (
        "originaire racines lieu_de_naissance d'ou enfance | originaire racines nee_en ne_en "
        "nes_a enfance j'ai_grandi"
    ),
    "employer": (
        "societe boite poste embauch* employ* bosse gagne_*_vie dans_quoi | bosse boite societe "
        "poste embauch* cdi cdd licenci* demission* promu* promotion stage nouveau_boulot boulot "
        "usine auto-entrepreneu* j'ai_quitte change_de_metier change_de_travail nouveau_travail "
        "monte_ma_boite cree_ma cree_mon ouvert_ma ouvert_mon je_tiens je_gere je_dirige "
        "au_chomage reconversion pris_un_poste rejoint je_vends je_repare j'enseigne taf "
        "a_mon_compte mes_clients mes_patients mes_eleves demissionn* vire*"
    ),
    "profession": (
        "profession* exerce gagne_*_vie travaille_*_comme boulot quel_poste occupe dans_la_vie "
        "dans_quoi | je_suis_architecte* je_suis_comptable* je_suis_journaliste* "
        "je_suis_dentiste* je_suis_pompier* je_suis_policier* je_suis_pilote* je_suis_plombi* "
        "je_suis_menuisi* je_suis_peintre* je_suis_boulang* je_suis_coiffeu* je_suis_chauffeu* "
        "je_suis_traduct* je_suis_photographe* je_suis_graphiste* je_suis_psychologue* "
        "je_suis_veterinaire* je_suis_pharmacien* je_suis_institut* je_suis_agricult* "
        "je_suis_macon* je_suis_comedien* je_suis_music* je_suis_biologiste* je_suis_chimiste* "
        "je_suis_secretaire* je_suis_vend* je_suis_kine* je_suis_sage-femme je_suis_fleuriste "
        "je_suis_bibliothec* je_suis_cuisini* je_suis_serveu* je_suis_mecanicien* "
        "je_suis_electricien* je_suis_technicien* je_suis_apicult* infirmi* boulang* coiffeu* "
        "plombi* menuisi* graphiste architecte comptable libraire fleuriste cuisini* mecanicien* "
        "electricien* factrice facteur instit institutrice professeur* prof kine decorat* "
        "ebeniste* en_tant_que de_metier devenu* apprenti* alternance patissi* je_suis_*eur "
        "je_suis_*euse je_suis_*iste je_suis_*logue je_suis_*graphe je_suis_*trice je_suis_*icien "
        "je_suis_*icienne je_suis_cheffe je_suis_juge je_tiens_un je_tiens_une je_gere je_dirige "
        "mon_metier reconversion au_chomage mere_au_foyer apiculteur apicultrice je_vends "
        "je_repare j'enseigne je_bosse je_construis je_concois je_corrige je_traduis je_programme "
        "je_soigne je_nettoie je_livre j'inspecte je_conseille je_restaure j'installe je_m'occupe "
        "mes_clients mes_eleves a_mon_compte boulot"
    ),
    "age": "quel_age_* annee_de_naissance | ans_et_demi l'age_de fete_mes_# trentaine quarantaine",
    "birthday": (
        "anniv date_de_naissance est_ne est_nee est-elle_nee est-il_ne ne_le nee_le | "
        "anniv ne_en nee_en fete_mes mon_anniversaire ne_le_# "
        "ne_le_1er ne_un_# nee_un_# ne_le"
    ),
    "food": (
        "aliment* plat plats gourmand* dessert gouter evite alimentation ne_mange | plat fromage "
        "pain pizza pates soupe raclette gratin tartiflette couscous sushi curry chocolat glace "
        "poisson fruits_de_mer legume* fruit* poulet boeuf gateau tarte crepe* quiche vegetarien* "
        "lactose gluten jeune cuisiner patisserie plus_de_* ne_mange_plus arrete_de_manger "
        "arrete_le arrete_la arrete_les laitages choucroute galette* cassoulet ratatouille "
        "pot-au-feu huitres"
    ),
    "drink": (
        "boire_* lait | tisane infusion lait eau cidre champagne rhum whisky pastis cafe* "
        "expresso limonade sobre ne_bois_plus ne_bois_pas sans_alcool jus_de chocolat_chaud "
        "plus_une_goutte"
    ),
    "allergy": (
        "supporte* tolere* eviter reaction interdit peut_*_pas_manger nocif dangereu* en_danger "
        "danger rend_malade | reaction supporte_pas supporte_mal tolere_pas urticaire gonfle* "
        "eternu* rhume_des_foins coeliaque anaphyl* boutons interdit interdite interdites "
        "interdits urgences gratte plaques demangeaison* demange oedeme rougeurs me_rend_malade "
        "me_rendent_malade digere_pas digere_mal quincke eternue allergologue ne_peux_pas_manger "
        "ne_peux_plus_manger gonfle gonflee gonfler enfle* ma_langue mes_levres ma_gorge "
        "de_volume samu sos_medecins c'est_mort etouffe* pas_le_droit intolerant* "
        "la_gueule_gonflee"
    ),
    "health": (
        "souffre* sante_* maladie probleme* douleur* mal_* operer opere operee chirurgie genou "
        "dos epaule cheville poignet hanche jambe bras ventre cou coude blesse* | souffre* "
        "douleur* mal_au mal_a hypertension tension thyroide arthrite arthrose epilep* anemi* "
        "depress* anxiete insomni* cancer hernie sciatique lumbago casse_le casse_la foule* "
        "entorse enceinte cholesterol eczema psoriasis tdah acouphene* apnee vertige* prothese "
        "asthmatique diabetique allergique_a epileptique avc fauteuil_roulant malentendant* "
        "sourd* daltonien* spondylarthrite operer opere operee chirurgie casse* fracture* platre "
        "bequille* kine irm menisque ligament* opere* mal_aux le_dos"
    ),
    "partner": (
        "couple situation_amoureuse conjoint* sort_avec vie_sentimentale marie* | divorce* "
        "separe* veuf veuve mon_ex en_couple fiance* pacse* copain copine amoureu* mon_homme "
        "ma_moitie nous_vivons_ensemble ensemble_depuis ma_femme mon_mari rompu ma_meuf mon_mec"
    ),
    "children": (
        "bambin jumeaux jumelles beau-fils belle-fille gamin* gosse* petite | jumeaux jumelles "
        "gamin* gosse* petit_dernier petite_derniere aine ainee cadet* beau-fils belle-fille"
    ),
    "siblings": "frere freres soeur soeurs | frere freres soeur soeurs jumeau jumelle",
    "relatives": (
        "beau-frere belle-soeur belle-mere beau-pere petit-fils petite-fille gendre bru parrain "
        "marraine beaux-parents filleul* beau-fils belle-fille cousin*"
    ),
    "friend": "meilleur_ami meilleure_amie pote copain",
    "pets": (
        "compagnie bestiole chiot chaton | chiot chaton labrador berger caniche teckel bouledogue "
        "batard batarde lapin lapins cochon_d'inde perruche* iguane serpent poisson_rouge "
        "poissons aquarium ane chevre* poule poules canard souris rat hamster gecko tortues "
        "siamois furet perroquets perruches cacatoes furets cochons_d'inde octodon gerbille* "
        "chinchilla herisson axolotl grenouille* crapaud cameleon mygale pigeon* mouton* alpaga* "
        "cochon poney oie* dalmatien husky chihuahua epagneul setter malinois golden chatons "
        "chiots minou matou adopt*"
    ),
    "leisure": (
        "activite* detend* exerce_*_sport pratique passe_*_temps soirees entraine en_forme "
        "la_forme | entraine* marathon nager courir course velo cyclisme rando* marche escalade "
        "surf voile aviron kayak volley handball basket rugby badminton squash golf boxe judo "
        "karate escrime patin* plongee poterie ceramique couture coudre tricot* crochet brod* "
        "dessin* photo* theatre zumba pilates salsa tango danse potager jardin* puzzle* "
        "mots_croises camping champignons pecher aquarelle* calligraphie petanque equitation "
        "cuisine origami chorale flechettes billard genealogie collectionne philatelie "
        "club_de_lecture en_forme"
    ),
    "music": (
        "instrument_* joue_*_instrument genre ecoute | saxophone trompette trombone clarinette "
        "hautbois harpe ukulele accordeon harmonica batterie basse contrebasse violoncelle flute "
        "orgue clavier tambour percussion* cornemuse jazz rock soprano alto tenor je_joue_de "
        "joue_de_l'* joue_de_la cor tuba basson clavecin xylophone fanfare vielle biniou "
        "mandoline"
    ),
    "film": "regarde | realisateur",
    "series": "serie series tele television regarde | serie saison episode* netflix",
    "book": (
        "lecture bouquin poesie litterature polar | bouquin* lecture poeme* polar* roman* relis"
    ),
    "favourite": (
        "aime_le_plus adore plus_aime prefer* | adore j'adore raffole ne_me_lasse meilleur* "
        "fan_de plus_que_tout rien_ne_vaut j'aime_le_plus"
    ),
    "dislike": (
        "n'aime_pas deteste deteste_* supporte_pas horreur agace degoute* aversion aime_le_moins "
        "aime_*_pas | deteste n'aime_pas horreur_de supporte_pas agace enerve beurk berk degoute* "
        "degueulasse immangeable insupporte* pas_mon_truc tres_peu_pour_moi quelle_horreur "
        "je_fuis plutot_mourir infect n'aime_plus insupportable ca_m'enerve"
    ),
    "languages": (
        "maternelle bilingue couramment | anglais espagnol allemand italien portugais russe "
        "chinois japonais arabe neerlandais breton basque couramment bilingue"
    ),
    "contact": "contact* appeler ecrire | whatsapp appelez ecrivez",
    "wedding": (
        "noce epouse* union fiancailles | me_marie nous_marions fiancailles lune_de_miel "
        "ceremonie noces se_marie"
    ),
    "travel": (
        "destination pays visite* sejour escapade partir aller_*_vacances vole avion ou_part | "
        "reserve billets sejour escapade croisiere sac_a_dos on_part je_pars vol train_pour "
        "semaine_en semaine_a vacances_en nous_partons vol_pour a_la_place randonnee avion"
    ),
    "commute": (
        "transport se_rend trajet_* va_au_travail se_deplace moyen_de_locomotion | trajet metro "
        "tram bus train a_pied trottinette bicyclette a_velo covoitur* a_moto"
    ),
    "study": (
        "diplome fac cursus licence master formation lycee etudie* | fac licence master doctorat "
        "these diplome lycee bts formation semestre ecole_de inscri* cursus bac"
    ),
    "style": (
        "repondre reponse* ton style longueur s'adresser tutoyer vouvoyer format rediger "
        "langue_*_reponse faut-il faut-il_*_tutoyer comment_*_adresser comment_*_repondre "
        "presenter unites format_* messages unite | court* bref* concis* vouvoie* tutoie* tutoyez "
        "vouvoyez sans_emoji* emoji* formel familier liste* tableau evite puces en_francais "
        "direct simplement phrases_courtes celsius kilometres sans_detour droit_au_but "
        "va_a_l'essentiel numerot* exemples sources jargon une_phrase deux_phrases trois_phrases "
        "prenom"
    ),
    "plans": "compte_* envisage | envisage compte prevu prochain*",
    "car": (
        "moto scooter roule camion | moto scooter volkswagen opel toyota ford dacia fiat bmw audi "
        "tesla kia hyundai mazda clio twingo electrique permis camping-car fourgon van utilitaire "
        "permis_de_conduire suzuki nissan volvo mini jeep seat skoda velo trottinette cyclomoteur "
        "mobylette"
    ),
    "appointment": (
        "rdv medecin_quand consultation dentiste_quand entretien | consultation dentiste "
        "entretien a_#_heures a_#h* irm radio vaccin prise_de_sang controle"
    ),
    "medication": (
        "traite* ordonnance cachet* pilule* | ordonnance cachet* pilule inhalateur insuline "
        "antibiotique* ibuprofene doliprane paracetamol sirop gouttes mg piqure* ventoline "
        "traitement prescrit"
    ),
    "phone": "appeler numero_* | portable",
    "device": (
        "telephone_*_utilise ordinateur appareil tablette smartphone ordi portable_*_utilise | "
        "iphone android samsung ordinateur ordi macbook tablette ipad xiaomi pixel windows linux "
        "smartphone fairphone nokia huawei motorola oppo oneplus honor realme xperia redmi"
    ),
    "learning": (
        "apprendre formation lecons inscri* en_train_d'apprendre | apprendre lecons inscri* "
        "initiation atelier me_mets_a j'apprends je_me_suis_lanc* me_suis_mis*"
    ),
    "smoking": "cigarette* tabac vapot* fumer fumeur* | cigarette* tabac vapot* fumer cigarett*",
    "author": "poete romanci* | poete romanci* auteu* ecrivain*",
    "singer": "artiste music* | artiste concert album chanson*",
    "team": (
        "equipe club supporte supporter | equipe club supporter supportrice match abonne* match* "
        "handball foot"
    ),
    "game": (
        "jeu jeux console jeu_video joue_a | jeu_video jeux console playstation xbox nintendo "
        "switch minecraft belote domino petanque echecs tarot scrabble cartes"
    ),
    "colour": "couleur couleurs | couleur",
    "fear": (
        "peur craint phobie effraie redoute effray* trouille phobie* | peur crains phobie panique "
        "effraie terrifi* angoisse j'ai_peur redoute vertige claustrophob* araignees hauteurs "
        "me_terrifie trouille frousse flippe* angoisse*"
    ),
    "goal": "but objectif reve ambition | objectif mon_reve reve_de economise un_jour",
    "doctor": (
        "dentiste medecin_traitant medecin docteur therapeute | dentiste medecin docteur dr "
        "therapeute kine dermato* cardiolog* gyneco* ophtalmo* pediatre orthodontiste osteo*"
    ),
    "sleep": (
        "dort dormir couche leve reveille | dors dormir couche leve_a reveil* leve-tot couche-tard"
    ),
    "money": "gagne salaire budget revenu* loyer | gagne salaire budget par_mois euros loyer",
    "religion": (
        "religion religieu* croyant* eglise | catholique musulman* juif juive bouddhiste athee "
        "protestant* eglise mosquee"
    ),
    "size": (
        "taille mesure pese poids pointure groupe_sanguin | mesure pese kilos pointure taille_# "
        "groupe_sanguin"
    ),
    "software": (
        "logiciel* application outil* editeur | logiciel* application appli excel python java "
        "photoshop"
    ),
    "project": "projet* ecrit travaille_sur | projet* ecris travaille_sur these",
    "collection": "collection*",
    "volunteering": "benevol* association | benevol* association refuge",
    "garden": "jardin plantes potager balcon | jardin plantes potager balcon tomates",
    "deadline": "echeance delai examen rendre",
    "diet": (
        "regime vegetari* vegan* vegetalien* viande mange_*_viande ne_mange | vegetari* vegan* "
        "vegetalien* viande poisson gluten lactose halal casher regime plus_de_gluten "
        "plus_de_viande ne_mange_plus arrete_la_viande sucre laitages sans_gluten"
    ),
    "sport": (
        "sport sports entraine | entraine* marathon nage nager natation courir course velo "
        "cyclisme rando* randonnee escalade grimpe grimper surf voile aviron kayak volley "
        "handball basket rugby badminton squash golf boxe judo karate escrime patin* plongee "
        "tennis football foot ski yoga pilates"
    ),
    "email": "adresse_e-mail adresse_mail adresse_electronique adresse_email |",
    "delivery": "colis livr* commande* expedi* | colis livre* commande* envoie* expedi*",
    "nickname": (
        "surnom* sobriquet appeler | appelle-moi appelez-moi on_m'appelle m'appellent surnom* "
        "tout_le_monde_m'appelle"
    ),
    "neighbour": "voisin voisine voisins voisines",
    "relation": "qui_est qui_sont |",
    "mother": "",
    "father": "",
    "brother": "frangin",
    "sister": "frangine",
    "grandparents": "papy",
}
