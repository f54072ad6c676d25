"""Expressions of statements only, by language and topic: what people tell in other words.

They were collected by listing, for each topic, what a statement about it names: kinds of schools
for a question about a school, kinds of lodging for one about a holiday. Written like the cues of
`topics`.
"""

from __future__ import annotations

from collections.abc import Mapping

STATEMENTS: Mapping[str, Mapping[str, str]] = {
    "de": {
        "study": "gelernter gelernte umgeschult fachabi",
        "school": (
            "*schule gymnasium realschule kita kindergarten "
            "krippe hort klasse_* *klassler* eingeschult"
        ),
        "travel": (
            "ferienhaus ferienwohnung campingplatz hotel pension jugendherberge strand skiurlaub "
            "wanderhutte airbnb stadtetrip"
        ),
        "delivery": "kommt_*_an ankommen ankunft zugestellt spediteur spedition verspatet post",
        "software": "programm programme tabellenkalkulation",
        "medication": "aufgeschrieben verordnet hab_*_bekommen",
        "sport": "schwimmbad nordbad freibad hallenbad",
        "leisure": "lieber_gehe_ich lieber_geh_ich",
        "profession": "gelernter gelernte von_haus_aus",
        "style": "auf_deutsch in_einfachen_worten ohne_fach*",
    },
    "en": {
        "school": (
            "school primary secondary kindergarten nursery preschool grade year_# class_at teacher"
        ),
        "travel": (
            "campsite camping hotel cottage villa resort beach b&b guesthouse caravan ferry "
            "we_went_with settled_on_*"
        ),
        "delivery": "arriv* courier dispatched out_of_stock delayed due_on",
        "software": "package tool switched_*_to spreadsheet* platform",
        "medication": "prescribed put_me_on inhaler antibiotic* ibuprofen tablet",
        "employer": "i_do_the_* front_desk reception",
    },
    "es": {
        "school": "colegio escuela guarderia infantil primaria secundaria parvulario instituto",
        "travel": (
            "camping hotel apartamento playa casa_rural hostal cabana queremos_ir_a ir_a_* "
            "alquilamos plantarme_*"
        ),
        "delivery": "llega* traen vienen retras* reparto mensajero transportista",
        "software": "herramienta hoja_de_calculo plataforma",
        "medication": "recet* me_ha_mandado me_mando me_mandaron por_las_noches gotas inhalador",
        "employer": "llevo_yo* llevo_la llevo_el recepcion hostal tienda taller bar restaurante",
        "contact": "apartado_de_correos",
        "music": "concierto heavy rock pop flamenco",
    },
    "fr": {
        "school": "ecole maternelle primaire college cp ce1 ce2 cm1 cm2 sixieme creche lycee",
        "travel": (
            "camping hotel gite plage location chalet auberge mer montagne ce_sera_* "
            "on_a_choisi on_part_a"
        ),
        "delivery": "livreur arrive* camion transporteur retard recu point_relais",
        "software": "outil tableur programme plateforme",
        "medication": "prescri* ordonnance comprime* medecin_m'a_donne",
        "home": "compromis longere les_cles demenag* emmenag*",
        "appointment": "reunion rdv",
    },
    "it": {
        "school": "scuola asilo materna elementari medie superiori liceo",
        "travel": (
            "campeggio albergo hotel agriturismo spiaggia villaggio appartamento_a porto_*_in "
            "traghetto baita"
        ),
        "delivery": "arriva* corriere ritardo consegnan* camion",
        "software": "strumento foglio_di_calcolo gestionale piattaforma",
        "medication": "prescri* ricetta pastigli* gocce inalatore",
        "profession": "ho_un_negozio ho_una_bottega ho_un_bar fa_l'* fa_il_* fa_la_* bottega",
        "employer": "ho_un_negozio ho_una_bottega negozio bottega",
        "style": "scrivimi caratteri puntati",
    },
    "pt": {
        "school": "escola colegio creche jardim_de_infancia",
        "travel": (
            "camping hotel pousada praia chacara sitio vamos_para aluguei alugamos casa_de_praia"
        ),
        "delivery": "chega* vem_dia atras* transportadora entregador correio",
        "software": "ferramenta planilha programa plataforma",
        "medication": "receit* comprimido* gotas remedio_*_noite",
        "profession": "cuido_d* tomo_conta_d* faco_*_pra_fora administro",
        "employer": "cuido_d* oficina loja escritorio",
        "leisure": "meu_negocio_e pedal* caminhar correr",
    },
    "ru": {
        "school": "школ* гимнази* лице* класс* детск*_сад* садик*",
        "travel": "отел* пляж* море моря турбаз* дач* кемпинг* поездк* байкал* экскурси*",
        "delivery": "привез* привоз* задерж* курьер* склад* пришл* привезти получ*",
        "software": "таблиц* сервис* платформ* табличк*",
        "medication": "прописал* назначил* лекарств* капл* укол* ингалятор*",
        "profession": (
            "работает_* штурман* слесар* токар* сварщик* электрик* сантехник* бухгалтер* "
            "продавец продавщиц* повар* учител* преподав* медсестр* водител*"
        ),
        "style": "отвечаите пишите канцеляри* покороче",
    },
    "zh": {
        "school": "小学 中学 初中 高中 幼儿园 年级 转到",
        "travel": "海边 民宿 露营 度假 沙滩 景区 住_*_天 商量_*_去 自由行 出发去",
        "delivery": "送到 才能到 到货 推迟 延期 发货 物流 寄到 收到",
        "software": "软件 表格 平台 系统 飞书 钉钉 企业微信",
        "medication": "开了_*_药 处方 医生开 吃药 服用",
        "profession": "公司做 做跟单 跟单 当_*_员 在_*_做",
        "style": "列一大堆 直接告诉我 客气 别太客气",
    },
    "ja": {
        "school": "小学校 中学校 高校 幼稚園 保育園 年生",
        "travel": "キャンプ 民宿 海水浴 ビーチ 旅館 宿 別荘",
        "delivery": "届く 届きます 届いて 遅れ 入荷 発送 にお願いします 配送",
        "software": "ソフト アプリ ツール",
        "medication": "処方 飲み薬 点眼 飲んで",
        "leisure": "巡る 巡り 休みの日 何より好き 趣味",
    },
}
