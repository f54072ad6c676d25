"""Cues of kinds of statements, by language, written like those of `topics`."""

from __future__ import annotations

KIND_CUES: dict[str, dict[str, str]] = {
    "en": {
        "preference": (
            "i_like i_love i_prefer i_hate i_dislike i_enjoy i_don't_like i_can't_stand favourite "
            "favorite i'd_rather i_adore"
        ),
        "plan": (
            "going_to i_will i'll we_will we'll i_plan we_plan planning_to i_want_to i'm_flying "
            "we're_flying i_intend"
        ),
        "opinion": "i_think i_believe i_find in_my_opinion i_feel_that imo imho",
        "hedged": (
            "maybe perhaps probably possibly i_guess i_might we_might might_be i_may we_may "
            "not_sure thinking_about_* thinking_of_* considering almost_moved nearly_moved"
        ),
    },
    "de": {
        "preference": "mag liebe bevorzuge hasse lieblings* am_liebsten gern gerne",
        "plan": "werde werden_wir habe_vor haben_vor plane planen mochte will",
        "opinion": "ich_finde ich_glaube ich_denke meiner_meinung meines_erachtens",
        "hedged": (
            "vielleicht wahrscheinlich moglicherweise eventuell bin_nicht_sicher uberlege uberlegen"
        ),
    },
    "es": {
        "preference": "me_gusta me_gustan me_encanta me_encantan prefiero odio favorit* preferid*",
        "plan": "voy_a vamos_a pienso quiero planeo pensamos",
        "opinion": "creo_que pienso_que me_parece en_mi_opinion",
        "hedged": (
            "quizas quiza tal_vez a_lo_mejor probablemente no_estoy_segur* estoy_pensando "
            "estamos_pensando"
        ),
    },
    "fr": {
        "preference": "j'aime j'adore je_prefere je_deteste je_n'aime prefere* favori*",
        "plan": "je_vais nous_allons on_va je_compte j'ai_l'intention je_veux",
        "opinion": "je_pense_que je_crois_que je_trouve a_mon_avis",
        "hedged": "peut-etre probablement sans_doute pas_sur pas_sure j'envisage on_envisage",
    },
    "it": {
        "preference": "mi_piace mi_piacciono amo preferisco odio preferit*",
        "plan": "ho_intenzione voglio penso_di vorrei andremo",
        "opinion": "credo_che penso_che secondo_me a_mio_parere",
        "hedged": "forse magari probabilmente non_sono_sicur* sto_pensando stiamo_pensando",
    },
    "pt": {
        "preference": "gosto adoro prefiro odeio favorit* preferid*",
        "plan": "vou_* vamos_* pretendo planejo quero",
        "opinion": "acho_que penso_que creio_que na_minha_opiniao",
        "hedged": (
            "talvez provavelmente quem_sabe nao_tenho_certeza estou_pensando estou_a_pensar"
        ),
    },
    "ru": {
        "preference": "люблю нравится нравятся предпочитаю ненавижу обожаю любим*",
        "plan": "собираюсь собираемся планирую планируем хочу буду будем поеду поедем",
        "opinion": "думаю считаю по-моему мне_кажется на_мой_взгляд",
        "hedged": "может_быть возможно наверное вероятно не_уверен* подумываю подумываем",
    },
    "zh": {
        "preference": "喜欢 最爱 讨厌 偏爱 不喜欢",
        "plan": "打算 计划 准备去 将要 要去",
        "opinion": "我觉得 我认为 我想说",
        "hedged": "也许 可能 大概 说不定 不确定",
    },
    "ja": {
        "preference": "好き 嫌い 大好き 好む",
        "plan": "つもり 予定 行きます 来月 来年",
        "opinion": "と思います と思う と考え",
        "hedged": "たぶん かもしれ おそらく 多分",
    },
}
