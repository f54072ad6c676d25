"""Portuguese."""

from __future__ import annotations

CUES = {
    "home": (
        "mora moro moramos morar vive vivo vivemos casa apartamento endereco mudei mudamos "
        "mudou mudar reside"
    ),
    "origin": (
        "e_de sou_de origem nasceu nasci natural veio_de vim_de cresci | sou_de origem nasci "
        "natural vim_de cresci"
    ),
    "employer": (
        "trabalha trabalho trabalhamos trabalhar emprego empresa escritorio sai comecei "
        "demiti* estagia estagio | trabalha trabalho trabalhamos trabalhar emprego empresa "
        "escritorio sai comecei demiti* estagio estagiando"
    ),
    "profession": (
        "profissao ocupacao | profissao trabalho_como sou_engenheir* sou_medic* sou_professor* "
        "sou_enfermeir* sou_advogad* sou_estudante aposentad*"
    ),
    "age": "quantos_anos idade anos_tem | tenho_#_anos #_anos completei",
    "birthday": (
        "aniversario nasceu nascimento data | aniversario nasceu nascimento niver "
        "faco_aniversario nasci"
    ),
    "food": (
        "come comer comida carne dieta vegetarian* vegan* | nao_como como_carne como_de_tudo "
        "come dieta carne vegetarian* vegan* cozinho"
    ),
    "drink": "bebe bebo beber bebida bebidas toma tomo cha cafe vinho cerveja alcool suco",
    "allergy": "alergi* intoleran*",
    "health": (
        "doenca* doente saude remedio* diagnos* asma diabet* enxaqueca* cirurgia doenca sofre "
        "| doenca* doente saude remedio* diagnos* asma diabet* enxaqueca* cirurgia bombinha"
    ),
    "partner": "marido mulher esposo esposa companheir* namorado namorada casad* solteir*",
    "children": "filho filhos filha filhas crianca criancas",
    "mother": "mae mamae",
    "father": "pai papai",
    "parents": "pais",
    "brother": "irmao irmaos",
    "sister": "irma irmas",
    "siblings": "irmaos",
    "grandparents": "avo avos",
    "relatives": "tia tio primo prima sobrinho sobrinha familia",
    "friend": "amigo amiga amigos amigas",
    "boss": "chefe",
    "colleague": "colega*",
    "pets": (
        "animal animais estimacao cachorro cachorra cao gato gata gatos coelho papagaio cavalo "
        "raca | animal animais estimacao cachorro cachorra cao gato gata gatos coelho papagaio "
        "cavalo tartaruga canario vira-lata gatinho"
    ),
    "leisure": (
        "hobby hobbies passatempo* tempo_livre lazer esporte esportes desporto pratica "
        "fim_de_semana | hobby tempo_livre esporte jogo jogar jogamos futebol tenis escal* "
        "nado nadar corro correr danco dancar pinto yoga xadrez pesca sabados domingos"
    ),
    "music": (
        "instrumento* toca musica banda coral | toco toca guitarra violao piano violino banda "
        "coral canto"
    ),
    "film": "filme filmes cinema",
    "book": "livro livros romance ler leio",
    "favourite": "favorit* preferid* predilet*",
    "languages": (
        "lingua linguas idioma idiomas fala falar | falo fala lingua* idioma* em_portugues "
        "em_ingles em_espanhol"
    ),
    "contact": (
        "contat* falar_com_ele | email e-mail telefone @address me_escrever me_ligar contato"
    ),
    "wedding": "casamento se_casa casar | casamento casamos caso casar",
    "travel": "ferias viagem viagens viaja viajar | ferias viagem viajamos viajo viajar",
    "commute": "para_o_trabalho ao_trabalho trabalhar_de | para_o_trabalho ao_trabalho bicicleta",
    "study": (
        "estuda estudo estudos universidade faculdade escola curso universitario | estudo "
        "estudei universidade faculdade faco_faculdade curso_de"
    ),
    "style": (
        "devo_responder responder_a como_devo tom assistente | sempre nunca por_favor responda "
        "me_chame curtas informal"
    ),
    "plans": "planos plano planeja | plano planos vou vamos",
    "car": "carro veiculo dirige | carro dirijo fiat toyota",
    "appointment": "consulta marcada horario | consulta marcada",
    "medication": "remedio medicamento toma | remedio* medicamento* tomo",
    "email": "email e-mail | @mail email",
    "phone": "telefone numero | @number numero",
    "device": "celular aparelho | celular iphone samsung motorola",
    "learning": "estudando aprende curso | aula aulas aprendendo curso",
    "smoking": "fuma fumante | fumo cigarro",
    "author": "autor autora autores escritor escritora",
    "singer": "cantor* artista banda | cantor* banda",
}
WEAK = (
    "proximo proxima usuario usuaria utilizador nome chama chamam chamo gosta gostam gosto "
    "adora prefere prefiro agora atualmente hoje costuma ainda por_favor diga sabe pessoa gente "
    "coisa usa quer precisa novo nova dia tempo vai faz fazer tem tenho ha melhor tipo qual "
    "quais quanto quantos mes acha pensa opiniao considera possui toca pratica sofre exatamente "
    "data ano deve"
)
SUBJECT = "eu nos"
UNREAL = (
    "se_eu se_nos imagine imagina suponha na_minha_historia no_meu_romance o_heroi meu_personagem "
    "sonhei se_*sse se_*ssemos protagonista personagem heroina mocinha mocinho no_romance "
    "no_filme na_novela na_serie meu_romance meu_conto escrevo_um_conto escrevendo_um_* "
    "minha_historia no_livro na_peca to_brincando estou_brincando brincadeira zoando e_zoeira"
)
PERSON = ""
NAME = r"(?:[Mm]e chamo|[Mm]eu nome é|[Ss]ou(?: o| a)?|[Aa]qui (?:é|fala)(?: o| a)?) ([A-ZÀ-Þ]\w+)"
