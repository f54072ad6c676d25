"""Expressions of questions only, by language and topic: what people ask for in other words.

They were collected by paraphrasing a question for each topic in each language, not from
conversations. Written like the cues of `topics`.
"""

from __future__ import annotations

from collections.abc import Mapping

QUESTIONS: Mapping[str, Mapping[str, str]] = {
    "de": {
        "school": "schule schulen kita kindergarten",
        "home": "hingezogen anschrift",
        "origin": "staatsangehorigkeit nationalitat",
        "profession": "hat_*_gelernt",
        "food": "leibspeise lebensmittel nahrungsmittel",
        "allergy": "bekommen_*_nicht schlecht_*_vertragen",
        "leisure": "ausgleich feierabend",
        "sport": "sich_fit fit_halt",
        "travel": "verbringt_*_sommer verbringt_*_winter verbringt_*_weihnachten",
        "style": "erklarungen erklart bei_erklarungen tonfall welchen_ton schreibstil",
        "appointment": "untersuchung vorsorge",
        "medication": "verschrieben arznei*",
        "goal": "spart sparen will_*_erreichen",
        "money": "kosten kostet geld ausgeben preis",
        "deadline": "abgeben abgabe frist",
        "sleep": "steht_*_auf aufsteh*",
        "dislike": "nicht_leiden ausstehen",
        "contact": "anrufen telefonieren anruf*",
        "delivery": (
            "post briefe brief pakete zusendung* wohin_*_schicken wohin_soll_*_senden "
            "wohin_sollen_*_geschickt wohin_sollen_*_gesendet wohin_sende* versandadresse "
            "ankommt ankommen kommt_*_an"
        ),
        "software": "programm programme",
    },
    "en": {
        "school": "school schools kindergarten nursery",
        "origin": "grow_up",
        "profession": "professionally",
        "food": "ingredient* serve",
        "allergy": (
            "makes_*_ill makes_*_sick avoided steer_clear ingredients_*_avoid* not_be_given"
        ),
        "leisure": "evenings",
        "sport": "stay_fit stays_fit",
        "travel": "spend_*_summer spend_*_winter spend_*_holidays spend_christmas",
        "commute": "travel_to_work",
        "contact": "call contacted get_hold_of",
        "style": "explanations explain explained when_i_answer when_answering when_replying",
        "appointment": "check-up checkup",
        "goal": "achieve saving_up save_up saving_for",
        "money": "cost costs price afford spend_on can_*_spend spending",
        "delivery": (
            "post letters mail arrive arrives arriving arrival delivery_address shipping_address "
            "postal_address mailing_address where_should_*_send where_should_*_sent "
            "where_should_*_ship where_do_*_send where_do_*_ship where_can_*_send where_to_send"
        ),
        "software": "package",
    },
    "es": {
        "school": "colegio escuela instituto guarderia",
        "origin": (
            "de_donde_es de_donde_viene lugar_viene viene_de de_que_pais se_crio nacionalidad"
        ),
        "profession": "de_que_vive",
        "food": "cenar almorzar desayunar",
        "allergy": "sientan_mal sienta_mal debe_evitar evitar",
        "sport": "en_forma",
        "travel": "pasa_*_verano pasara_*_verano el_verano",
        "commute": "llega_*_oficina llega_*_trabajo llega_a_la_oficina llega_al_trabajo",
        "study": "colegio",
        "style": "explicaciones explicar escribirle contestarle",
        "appointment": "dentista va_al_medico",
        "contact": "llamar telefonear localiz*",
        "goal": "lograr conseguir ahorra ahorrando",
        "money": "gastar gasta costo cuesta precio alquiler",
        "deadline": "entregar plazo vence",
        "nickname": "la_llamen lo_llamen le_llamen",
        "delivery": (
            "correo cartas carta llega llegan llegara llegaran direccion_de_entrega "
            "direccion_de_envio direccion_postal adonde_hay_que_enviar adonde_se_envia* "
            "a_donde_hay_que_enviar a_que_direccion_se_envia*"
        ),
    },
    "fr": {
        "school": "ecole maternelle college lycee scolarise*",
        "origin": "nationalite",
        "profession": "gagne-t-elle_*_vie gagne-t-il_*_vie gagne_sa_vie domaine_travaille",
        "allergy": "ne_peut_pas_manger ne_peut_manger digere",
        "sport": "en_forme",
        "travel": "passe_l'ete passera_l'ete passera-t-elle passera-t-il l'ete",
        "appointment": "chez_le_dentiste chez_le_medecin",
        "medication": "prescrit ordonnance",
        "device": "telephone",
        "goal": "accomplir realiser economise*",
        "money": "depenser coute cout prix",
        "deadline": "date_limite delai echeance rendre_le",
        "nickname": "etre_appelee etre_appele",
        "contact": "telephoner appeler",
        "delivery": (
            "courrier lettres arrive arrivera arriveront adresse_de_livraison adresse_postale "
            "ou_faut-il_envoyer ou_dois-je_envoyer ou_faut-il_expedier"
        ),
        "style": "explications expliquer",
    },
    "it": {
        "school": "scuola asilo liceo",
        "origin": "di_dov'e da_dove_viene nazionalita",
        "profession": "si_occupa",
        "partner": "single",
        "sport": "in_forma",
        "travel": "passera_*_estate passa_*_estate l'estate",
        "commute": "raggiunge_l'ufficio",
        "study": "studiato frequenta",
        "style": "formattate spiegazioni spiegare lunghe_le_risposte risposte rispondo rispondere",
        "appointment": "dal_dentista dal_medico",
        "medication": "prescritto prescritta prescritti",
        "contact": "telefonare chiamare si_raggiunge contattare",
        "software": "app applicazione",
        "goal": "realizzare risparmia*",
        "money": "guadagna spendere costa prezzo affitto",
        "deadline": "consegnare entro_quando scade scadenza",
        "delivery": (
            "lettere posta arriva arrivera arrivano arriveranno ordine consegn* "
            "indirizzo_di_consegna indirizzo_di_spedizione indirizzo_postale dove_vanno_spediti "
            "dove_vanno_spedite dove_vanno_mandati dove_devo_spedire"
        ),
        "size": "quanto_e_alta quanto_e_alto",
        "nickname": "essere_chiamata essere_chiamato",
        "dislike": "non_piace non_piacciono",
    },
    "ja": {
        "school": "学校 小学校 幼稚園 保育園",
        "origin": "国籍",
        "age": "はいくつ いくつになっ いくつです",
        "allergy": "食べられませ 食べられない",
        "leisure": "休日 休みの日 過ごし方",
        "travel": "出かけ",
        "style": "説明の 説明する 希望は 答えの長さ 返信 返事",
        "appointment": "健診",
        "medication": "処方",
        "fear": "苦手",
        "goal": "貯金",
        "money": "いくら",
        "deadline": "提出",
        "delivery": "届き 届く 送り先 送れば 注文 配送先 送付先 届け先",
        "learning": "講座",
        "sleep": "眠れ",
        "contact": "電話",
    },
    "pt": {
        "school": "escola colegio creche",
        "origin": "de_onde_e de_onde_veio cresceu nacionalidade",
        "profession": "trabalho trabalha",
        "food": "cozinha",
        "partner": "parceiro parceira",
        "sport": "em_forma",
        "travel": "passar_o_verao passar_as_ferias passar_o_natal",
        "commute": "chega_ao_escritorio chega_ao_trabalho",
        "study": "estudou",
        "style": "explicacoes explicar respondo",
        "appointment": "ao_dentista ao_medico",
        "contact": "telefonar ligar falo_com",
        "goal": "alcancar poupando juntando_dinheiro",
        "money": "gastar custa custo preco aluguel",
        "deadline": "entregar prazo",
        "nickname": "ser_chamada ser_chamado",
        "delivery": (
            "cartas correspondencia chega chegam chegara endereco_de_entrega endereco_de_envio "
            "endereco_postal para_onde_devem_ser_enviad* para_onde_devo_enviar para_onde_envi*"
        ),
    },
    "ru": {
        "school": "школ* гимнази* садик* учится",
        "origin": "национальност*",
        "food": "любит_есть",
        "allergy": "от_чего_*_плохо нельзя_есть",
        "health": "чем_болеет жалуется",
        "sport": "поддерживает_форму",
        "music": "на_чем_играет",
        "travel": "проведет_лето проводит_лето",
        "style": "объясня* стиль как_писать как_обращаться",
        "medication": "прописал*",
        "software": "пользуется каким_инструментом",
        "goal": "добиться копит",
        "money": "потратить платит стоит цена",
        "delivery": (
            "письма почту посылать присылать придет приедет привезут доставят адрес_доставки "
            "почтовый_адрес"
        ),
        "relation": "кем_приходится",
        "contact": "звонить позвонить",
    },
    "zh": {
        "school": "学校 上学 小学 幼儿园",
        "origin": "长大 哪国人",
        "employer": "打工",
        "allergy": "会不舒服",
        "contact": "打电话 找 什么方式",
        "goal": "存钱",
        "money": "挣 多少钱 花多少 能花 价格",
        "deadline": "时候交",
        "delivery": "送到 到货 寄到 订单 快递 收货地址 收货",
        "size": "多大的鞋 尺码",
        "style": "建议 解释 说话方式",
    },
}
