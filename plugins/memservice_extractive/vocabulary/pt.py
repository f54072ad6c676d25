"""Portuguese."""

from __future__ import annotations

CUES = {
    "home": (
        "cidade bairro residencia residindo localidade aluga* instal* qual_cidade | cidade bairro "
        "mudanca aluguei alugo alugamos instal* apartamento apê ape kitnet republica "
        "comprei_uma_casa compramos_uma_casa divido_apartamento vivendo_em morando me_mudei "
        "nos_mudamos estou_morando moro_com apartamento_novo casa_nova to_morando vim_pra fui_pra "
        "foi_pra casinha moro_*_agora"
    ),
    "origin": (
        "natural_de procedencia raizes onde_nasceu infancia | natural_de raizes criad* origin* "
        "infancia"
    ),
    "employer": (
        "empregador companhia local_de_trabalho empregad* contratad* negocio loja ganha_*_vida "
        "sustento trampo | companhia loja contratad* contrataram promovid* promocao demissao "
        "pedi_as_contas autonom* novo_emprego turno plantao carteira_assinada fabrica hospital "
        "estagi* mudei_de_emprego troquei_de_emprego abri_um abri_uma montei administro gerencio "
        "dirijo_uma agora_sou fui_contratad* fui_demitid* pedi_demissao trabalho_em trabalho_na "
        "trabalho_no desempregad* negocio_proprio por_conta_propria vendo conserto dou_aula* "
        "trampo me_contrataram meus_clientes meus_pacientes meus_alunos concurso demit*"
    ),
    "profession": (
        "que_faz_da_vida cargo funcao trabalha_com trabalha_como ganha_a_vida o_que_*_faz "
        "em_que_trabalha ganha_*_vida sustento oficio tira_*_sustento trampo | sou_arquitet* "
        "sou_contador* sou_jornalista sou_dentista sou_bombeir* sou_policial sou_piloto "
        "sou_encanador* sou_carpinteir* sou_pintor* sou_padeir* sou_cabeleireir* sou_motorista "
        "sou_tradutor* sou_fotograf* sou_designer sou_programador* sou_psicolog* sou_veterinari* "
        "sou_farmaceutic* sou_agricultor* sou_pedreiro sou_ator sou_atriz sou_music* sou_biolog* "
        "sou_quimic* sou_secretari* sou_vendedor* sou_fisioterapeuta sou_cozinheir* sou_garcon* "
        "sou_mecanic* sou_eletricista arquitet* jornalista enfermeir* professor* engenheir* "
        "advogad* programador* psicolog* veterinari* farmaceutic* padeir* cabeleireir* "
        "carpinteir* encanador* tradutor* fotograf* motorista costureir* confeiteir* "
        "bibliotecari* trabalho_como trabalha_como atuo_como dou_aula dou_aulas estagiari* "
        "agora_sou sou_*ista sou_*logo sou_*loga sou_*grafo sou_*grafa sou_*dor sou_*dora "
        "sou_*tor sou_*tora sou_*eira sou_*eiro sou_guia sou_chef sou_juiz* trabalho_de "
        "administro gerencio dona_de_casa desempregad* guia_num guia_numa vendo conserto "
        "dou_aula* ensino construo projeto traduzo programo cuido_de entrego inspeciono restauro "
        "instalo atendo meus_clientes meus_alunos contratad* comeco_como comecei_como "
        "por_conta_propria guia fiscal"
    ),
    "age": "que_idade quantos_anos_* | fiz_# faco_# fiz_*_anos trintao trinta_anos",
    "birthday": (
        "data_de_nascimento quando_nasceu faz_aniversario | faco_aniversario aniversari* "
        "meu_aniversario"
    ),
    "food": (
        "prato pratos aliment* sobremesa almoco jantar cafe_da_manha evita culinaria receita "
        "doces doce | prato arroz feijao feijoada churrasco pao queijo pizza massa macarrao sopa "
        "chocolate sorvete bacalhau peixe frutos_do_mar camarao frutas verdura* frango porco bolo "
        "brigadeiro acai tapioca moqueca pastel coxinha sushi lactose gluten celiac* jejum "
        "legumes salada parei_de_comer nao_como_mais cortei acucar laticinios pao_de_queijo "
        "acaraje"
    ),
    "drink": (
        "tomar beber_* leite | chimarrao leite agua cachaca caipirinha rum uisque vinho* cerveja* "
        "refrigerante abstemi* cafezinho mate nao_bebo parei_de_beber sem_alcool guarana "
        "nem_uma_gota"
    ),
    "allergy": (
        "tolera evitar reacao nao_pode_comer faz_mal proibid* causa_reacao nao_pode nao_come | "
        "reacao faz_mal incho coceira urticaria nao_posso_comer celiac* espirr* rinite inchad* "
        "coca empolad* passo_mal me_faz_mal fazem_mal manchas proibid* alergista nao_posso_tomar "
        "passo_mal_com empol* inchou inchada inchado minha_garganta minha_lingua fecha_a_garganta "
        "pronto-socorro nem_o_cheiro placas pipocou intolerante nao_consigo_respirar"
    ),
    "health": (
        "problema_de_saude condicao dor dores enfermidade padece operar operacao joelho costas "
        "ombro tornozelo quadril perna braco estomago pescoco cotovelo machuc* aconteceu_com "
        "pe_do pe_da | sofro dor dores pressao_alta hipertensao tireoide artrite artrose epilep* "
        "anemi* depress* ansiedade insonia cancer hernia ciatica quebrei torci fratura gravida "
        "colesterol psoriase tdah dislexi* apneia vertigem labirintite aparelho_auditivo refluxo "
        "asmatic* diabetic* epiletic* infarto avc cadeira_de_rodas surd* daltonic* operar operado "
        "operada operacao fratur* gesso muleta* fisioterap* ortoped* ressonancia coluna menisco "
        "doi"
    ),
    "partner": (
        "estado_civil relacionamento conjuge casal sai_com | divorciad* separad* viuv* minha_ex "
        "meu_ex noiv* conjuge moro_com namor* minha_mulher meu_marido minha_esposa moramos_juntos "
        "juntos_ha apaixonad* terminei terminamos me_separei gravida"
    ),
    "children": (
        "filhote gemeos gemeas enteado enteada filh* bebe nenem menina | gemeos gemeas enteado "
        "enteada caçula cacula mais_velh* mais_nov* filh* bebe nenem menina"
    ),
    "siblings": "irmao irma irmas | irmao irma irmas gemeo gemea",
    "relatives": (
        "cunhad* sogr* neto neta netos genro nora padrasto madrasta padrinho madrinha comadre "
        "compadre afilhad* entead* prim* sobrinh*"
    ),
    "friend": "melhor_amig*",
    "pets": (
        "bicho bichinho pet filhote | pet filhote cachorrinh* gatinha labrador poodle salsicha "
        "beagle porquinho_da_india calopsita periquito* iguana cobra peixe peixes aquario cabra "
        "galinha* pato rato hamster jabuti vira-latas papagaios furao porquinho-da-india "
        "porquinhos gerbil chinchila ourico axolote ra sapo camaleao aranha pombo* ovelha* alpaca "
        "porco* potro egua ganso dalmata husky chihuahua pastor_alemao golden gatinh* filhote* "
        "adot* burro mula vaca"
    ),
    "leisure": (
        "diverte atividade treina exercicio exercicios distrai relaxa interesses faz_no_tempo "
        "em_forma | treino treinar academia maratona nadar natacao correr corrida ciclismo bike "
        "bicicleta trilha trilhas caminhada montanhismo surf* remo caiaque volei basquete padel "
        "golfe boxe judo jiu-jitsu capoeira karate esgrima patin* esqui mergulh* ceramica "
        "costura* tricot* croche bord* desenh* fotograf* teatro zumba pilates salsa samba forro "
        "danca horta jardin* videogame quebra-cabeca* palavras_cruzadas acampar pescar aquarela* "
        "caligrafia cozinhar marcenaria coleciono coral sinuca dardos genealogia clube_do_livro "
        "em_forma"
    ),
    "music": (
        "genero ouve escuta tocar | saxofone trompete trombone clarinete oboe harpa ukulele "
        "sanfona acordeao gaita bateria baixo contrabaixo violoncelo flauta orgao teclado tambor "
        "cavaquinho pandeiro guitarra jazz rock samba mpb soprano tenor toco_violino toco_piano "
        "tuba trompa fagote xilofone berimbau"
    ),
    "film": "filme_* | longa diretor",
    "series": "serie series televisao assiste | serie temporada episodio* netflix novela",
    "book": "leitura obra poesia literatura le | leitura poema* romance lendo reli",
    "favourite": (
        "mais_gosta prefere_* adora ama melhor | adoro amo prefiro mais_gosto sou_apaixonad* "
        "melhor gosto_mais mais_amo nao_vivo_sem nada_como sou_fa sou_louc* comeria"
    ),
    "dislike": (
        "nao_gosta odeia detesta nao_suporta incomoda nojo aguenta menos_gosta suporta | "
        "nao_gosto odeio detesto nao_suporto me_incomoda nao_aguento nojo nao_desce nao_engulo "
        "nao_e_pra_mim nao_e_comigo invencao_do_* horror horrivel furada pavor abomino "
        "passo_longe nem_mort* nem_a_pau nem_pensar me_irrita enjoo insuportavel"
    ),
    "languages": (
        "materna bilingue estrangeir* | ingles frances alemao italiano espanhol russo chines "
        "japones arabe libras bilingue fluente"
    ),
    "contact": "contactar entrar_em_contato escrever ligar | whatsapp zap me_liga me_escreve",
    "wedding": (
        "casara cerimonia noivado casa-se | vamos_casar lua_de_mel pedid* noivado casar casorio"
    ),
    "travel": (
        "para_onde destino pais visitar passeio ir_nas_ferias voou voar viajou aviao | reserv* "
        "passagem passagens cruzeiro mochilao vou_para voo excursao embarco intercambio vou_pra "
        "vamos_pra aviao andei_de passeio"
    ),
    "commute": (
        "vai_ao_trabalho chega_ao_trabalho transporte desloca* vai_para_o_trabalho se_locomove "
        "meio_de_transporte | bike metro onibus trem a_pe carona patinete de_bicicleta de_bike "
        "andando"
    ),
    "study": (
        "graduacao curso_* mestrado matricul* colegio cursa | graduacao mestrado doutorado tese "
        "tcc faculdade matricul* semestre vestibular formad* me_formei pos-graduacao "
        "voltei_a_estudar ensino_medio supletivo enem"
    ),
    "style": (
        "tratar trato respost* tom estilo tamanho longas formato redigir idioma_*_responder "
        "respondid* gostaria como_*_responder como_*_escrever quer_*_respostas formato_* unidades "
        "resposta respostas mensagens unidade | breve* curto* concis* direto sem_emojis emojis "
        "formal informal lista* tabela* evite prefiro_que voce topicos em_portugues simples "
        "girias sem_rodeios em_topicos celsius quilometros direto_ao_ponto numerad* exemplos "
        "fontes sem_jargao uma_frase duas_frases tres_frases primeiro_nome"
    ),
    "plans": "pretende tem_planejad* | pretendo planejo proxim*",
    "car": (
        "moto motocicleta veiculo que_carro | moto volkswagen gol chevrolet onix honda hyundai "
        "kia renault peugeot ford palio uno fusca eletrico carteira_de_motorista hb20 corolla "
        "meu_carro trailer motorhome suzuki nissan volvo jeep caminhonete bicicleta bike patinete "
        "lambreta"
    ),
    "appointment": (
        "medico_quando dentista_quando exame entrevista agendad* | exame dentista medico "
        "entrevista agendad* as_#h* marquei ultrassom raio-x ressonancia vacina exames"
    ),
    "medication": (
        "farmaco* tratamento comprimido* receit* | comprimido* inalador insulina antibiotic* "
        "ibuprofeno paracetamol dipirona xarope gotas mg injecao losartana tratamento receit* "
        "bombinha receitou"
    ),
    "phone": "telefonar celular_numero ligar numero_* | celular whatsapp zap",
    "device": (
        "notebook computador dispositivo tablet celular_* smartphone | notebook computador laptop "
        "macbook tablet ipad xiaomi pixel windows linux android moto_g fairphone nokia huawei "
        "oppo oneplus honor realme xperia redmi"
    ),
    "learning": (
        "aprender aprendendo aulas aula | aprendendo aprender matricul* comecei_aulas oficina "
        "aprendo treinando"
    ),
    "smoking": (
        "cigarro* fumar vape tabaco fumante* | fumo fumar cigarro* vape parei_de_fumar cigarr* "
        "maco_de"
    ),
    "author": "poeta romancista escritor* | poeta escritor* autor*",
    "singer": "musico grupo | show album musica musicas",
    "team": (
        "time torce clube torced* equipe apoia | time torco torced* clube flamengo corinthians "
        "palmeiras gremio jogo_do torcida"
    ),
    "game": (
        "videogame* console jogo joga jogar | videogame* console playstation xbox nintendo switch "
        "minecraft domino truco baralho xadrez dama buraco"
    ),
    "colour": "cor cores | cor",
    "fear": (
        "medo teme fobia assusta pavor assustam panico | medo temo fobia panico assusta pavor "
        "tenho_medo me_da_medo vertigem claustrofob* aranhas altura"
    ),
    "goal": (
        "meta objetivo sonho sonha ambicao | meta objetivo meu_sonho sonho_em juntando_dinheiro "
        "um_dia"
    ),
    "doctor": (
        "dentista clinico medic* doutor* terapeuta | dentista meu_medic* doutor* dra terapeuta "
        "dermatolog* cardiolog* ginecolog* oftalmolog* ortopedist* pediatra ortodontista"
    ),
    "sleep": "dorme dormir acorda levanta | durmo dormir acordo levanto madrug* insonia",
    "money": (
        "ganha salario orcamento renda aluguel | ganho salario orcamento por_mes reais aluguel"
    ),
    "religion": (
        "religiao religios* acredita igreja | catolic* evangelic* espirita muculman* jude* "
        "budista ateu ateia igreja candomble umbanda"
    ),
    "size": (
        "altura mede pesa peso sapato calca tipo_sanguineo | altura meco peso_# quilos calco_# "
        "sapato tipo_sanguineo"
    ),
    "software": (
        "programa* software aplicativo ferramenta* editor | programa* software app aplicativo "
        "excel python java photoshop"
    ),
    "project": "projeto* escrevendo trabalhando | projeto* escrevendo construindo tcc",
    "collection": "coleciona colecao | coleciono colecao",
    "volunteering": "voluntari* ong | voluntari* ong abrigo",
    "garden": (
        "jardim plantas horta cultiva varanda | jardim plantas horta cultivo tomates varanda "
        "suculentas"
    ),
    "deadline": "prazo entrega prova | prazo entrega entregar prova",
    "diet": (
        "dieta vegetarian* vegan* carne alimentar come_doces | vegetarian* vegan* carne peixe "
        "gluten lactose celiac* dieta halal kosher parei_de_comer nao_como_mais cortei acucar "
        "laticinios"
    ),
    "sport": (
        "esporte esportes desporto treina exercicio exercicios | treino treinar academia maratona "
        "nado nadar natacao corro correr corrida ciclismo bike trilha trilhas escal* surf* remo "
        "caiaque volei basquete padel golfe boxe judo jiu-jitsu capoeira karate esgrima patin* "
        "esqui mergulh* tenis futebol yoga pilates"
    ),
    "email": "endereco_de_email endereco_de_e-mail endereco_eletronico correio_eletronico |",
    "delivery": (
        "encomenda* pacote* entreg* pedidos envi* | encomenda* pacote* entreg* pedidos mande*"
    ),
    "nickname": "apelido alcunha chamar | me_chame me_chamam me_chama apelido alcunha",
    "neighbour": "vizinho vizinha vizinhos vizinhas",
    "relation": "quem_e quem_sao |",
    "mother": "mainha",
    "father": "painho",
    "grandparents": "vovo",
}
