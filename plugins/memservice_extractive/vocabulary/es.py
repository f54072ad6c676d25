"""Spanish."""

from __future__ import annotations

CUES = {
    "home": (
        "domicilio ciudad localidad barrio pueblo residencia donde_*_ahora alquil* instal* "
        "ubicad* en_que_ciudad radica | domicilio barrio me_mude nos_mudamos mudanza alquil* "
        "instal* nuevo_piso departamento empadronad* compramos_un compre_un vivienda "
        "nos_instalamos vivo_con mudad* me_traslade traslad* nos_hemos_mudado piso_nuevo "
        "casa_nueva apartamento ando_en radic* me_vine llevo_*_en vivimos_en"
    ),
    "origin": (
        "natural_de procede* procedencia raices lugar_de_nacimiento infancia ninez | natural_de "
        "raices originari* me_crie criad* infancia"
    ),
    "employer": (
        "empleador compania negocio despacho laboral contratad* puesto_de_trabajo como_se_gana "
        "gana_*_vida a_que_se_dedica | empleador compania negocio despacho contratar* contrataron "
        "ascendieron ascendido ascenso renunci* autonom* nuevo_trabajo turno turnos jefe jornada "
        "fichad* entre_a_trabajar doy_clases he_dejado empiezo_a_trabajar trabajo_en abri abrimos "
        "monte mi_propi* negocio_propio dirijo gestiono llevo_un llevo_una fichado me_despidieron "
        "me_han_despedido me_contrataron cambie_de_trabajo cambiado_de_trabajo he_cambiado "
        "en_paro desempleado desempleada vendo reparo laburo curro pega chamba me_tomaron "
        "me_cogieron me_ficharon mis_clientes mis_pacientes mis_alumnos por_mi_cuenta renuncie "
        "dejé_el_trabajo"
    ),
    "profession": (
        "a_que_se_dedica se_gana_la_vida cargo empleo labor profesional trabaja_* como_se_gana "
        "gana_*_vida laburo gana_la_vida | soy_arquitect* soy_contador* soy_contable "
        "soy_periodista soy_dentista soy_bombero soy_policia soy_piloto soy_fontaner* "
        "soy_carpinter* soy_pintor* soy_panader* soy_peluquer* soy_conductor* soy_taxista "
        "soy_traductor* soy_fotograf* soy_disenador* soy_programador* soy_psicolog* "
        "soy_veterinari* soy_farmaceutic* soy_maestr* soy_agricultor* soy_albanil soy_actor "
        "soy_actriz soy_music* soy_biolog* soy_quimic* soy_administrativ* soy_secretari* "
        "soy_dependient* soy_fisioterapeuta arquitect* periodista bombero enfermer* profesor* "
        "ingenier* abogad* programador* disenador* psicolog* veterinari* farmaceutic* maestr* "
        "panader* peluquer* carpinter* fontaner* traductor* fotograf* soldador* contable "
        "trabajo_en_* de_profesion de_oficio pension autonomo encargad*_de encargad*_en "
        "repartidor* taxista "
        "conductor* apicultor* matrona bibliotecari* doy_clases soy_*ista soy_*logo soy_*loga "
        "soy_*grafo soy_*grafa soy_*ador soy_*adora soy_*ero soy_*era soy_*tor soy_*tora soy_guia "
        "soy_chef soy_juez soy_cocinero trabajo_de_* trabajo_como_* dirijo gestiono llevo_un "
        "llevo_una monitor* instructor* ama_de_casa en_paro vendo reparo laburo_de curro_de "
        "arreglo enseno construyo diseno_* traduzco programo_* cuido limpio reparto_* inspecciono "
        "asesoro restauro instalo atiendo investigo doy_clase imparto *ista mis_clientes "
        "mis_alumnos por_mi_cuenta autonom* tecnic* guia"
    ),
    "age": "que_edad anos_cumple cuantos_anos | cumplo_# cumplido_# anos_tengo treinta*",
    "birthday": (
        "fecha_de_nacimiento nacio_* cumple cuando_nacio nacid* | cumple cumplo_anos nacimiento "
        "cumplo_# mi_cumpleanos mi_cumple cumplo nacid*"
    ),
    "food": (
        "plato platos aliment* gastronom* postre merienda evita receta | plato arroz paella "
        "tortilla pan queso pizza pasta sopa postre chocolate helado pescado marisco fruta "
        "verdura* cordero pollo cerdo ternera jamon tarta pastel croquetas empanada* asado "
        "ceviche tacos guiso lentejas sin_lactosa ayuno ya_no_como dejado_de_comer deje_de_comer "
        "lacteos legumbres gazpacho churros cocido fabada arepas garbanzos"
    ),
    "drink": (
        "tomar leche | mate infusion* leche agua vermut ron whisky ginebra cerveza* cafe* "
        "refresco abstemi* no_bebo dejado_el_cafe deje_el_alcohol zumos horchata cava sidra "
        "tequila ni_una_gota"
    ),
    "allergy": (
        "tolera soporta_* sienta_mal no_puede_comer reaccion hace_dano prohibid* "
        "alimento_*_evitar no_pueda_comer perjudica cae_mal | reaccion sienta_mal sientan_mal "
        "me_hincho ronchas urticaria celiac* no_puedo_comer me_pica me_da_urticaria me_dan "
        "me_hincha me_pican picor sarpullido estornud* me_sienta_fatal me_sienta_mal "
        "me_sientan_fatal prohibid* habones alergolog* no_puedo_probar no_puedo_tomar "
        "no_puedo_ni_* me_brot* brotes hinchad* se_me_hincha se_me_cierra la_garganta la_lengua "
        "los_labios urgencias la_guardia ni_en_pintura ni_probar ni_las_mire ni_lo_mire "
        "manchas_rojas granos no_puedo_respirar me_cae_mal me_cae_fatal intolerante"
    ),
    "health": (
        "dolencia padece sufre problema_de_salud medic* dolor* condicion operan operar cirugia "
        "rodilla espalda hombro tobillo muneca cadera pierna brazo estomago cuello codo lesion* "
        "duele | padezco sufro dolor* hipertension tension tiroides artritis artrosis epilep* "
        "anemia depres* ansiedad insomnio cancer hernia ciatica lumbalgia me_rompi me_torci "
        "fractura embaraz* colesterol migrana* celiac* dermatitis psoriasis tdah apnea vertigo* "
        "audifono* asmatic* diabetic* epileptic* infarto silla_de_ruedas sord* daltonic* lupus "
        "operan operar operaron cirugia fractur* esguince* yeso muletas traumatolog* resonancia "
        "menisco ligament* duele dolor la_espalda"
    ),
    "partner": (
        "sentimental estado_civil relacion conyuge sale_con | divorciad* separad* viud* mi_ex "
        "prometid* conyuge saliendo_con me_case mi_pareja mi_chico mi_chica casados "
        "llevamos_juntos enamorad* rompimos corte_con me_separe terminamos embarazad*"
    ),
    "children": (
        "descendencia crio gemelos mellizos hijastr* hij* nene nena peque | gemelos mellizos crio "
        "cria nene nena mayor_se_llama pequena pequeno hijastr* hij* peque"
    ),
    "siblings": "hermano hermana hermanas | hermano hermana hermanas gemelo gemela",
    "relatives": (
        "cunado cunada suegra suegro nieto nieta yerno nuera padrastro madrastra padrino madrina "
        "cuñad* suegr* comadre compadre ahijad* hijastr* cunad* prim* sobrin* | cunado cunada "
        "suegra suegro nieto nieta yerno nuera padrastro madrastra padrino madrina comadre "
        "compadre ahijad* hijastr* suegr* cunad* prim* sobrin*"
    ),
    "friend": "mejor_amig*",
    "pets": (
        "animal_de_compania bicho | cachorro perrito gatito galgo podenco labrador caniche "
        "mestizo conejo conejos cobaya periquito* cotorra iguana serpiente peces pecera acuario "
        "burro cabra* gallina* pato raton hamster tortugas siames loros periquito cacatua hurón "
        "huron hurones cobayas jerbo chinchilla erizo ajolote rana sapo camaleon tarantula paloma "
        "palomas oveja ovejas alpaca cerdo cerdos patos ganso potro yegua gatitos gatit* perrit* "
        "bulldog dalmata pastor_aleman golden husky chihuahua galga adopt* asno mulo vaca ternero"
    ),
    "leisure": (
        "entretien* ratos_libres se_divierte actividad entrena ejercicio ocio en_forma | entreno "
        "entrenamiento gimnasio maraton natacion correr ciclismo bici senderismo caminat* montan* "
        "surf remo kayak voley padel baloncesto golf boxeo judo karate esgrima patin* esqui* "
        "buceo ceramica costura tejer tejo punto ganchillo bordar dibuj* fotograf* teatro zumba "
        "pilates salsa tango baile huerto jardiner* videojuegos rompecabezas puzles crucigramas "
        "acampar setas pescar acuarela* caligrafia coleccion* coro club_de_lectura billar dardos "
        "petanca genealogia aeromodelismo en_forma"
    ),
    "music": (
        "instrumento_* genero escucha | saxofon trompeta trombon clarinete oboe arpa ukelele "
        "acordeon armonica bateria bajo contrabajo violonchelo chelo flauta organo teclado tambor "
        "cajon bandoneon charango jazz rock flamenco soprano toco_la toco_el gaita laud trompa "
        "tuba timbal xilofono coral pandereta"
    ),
    "film": "peli pelis",
    "series": "serie series television | serie temporada capitulo* netflix",
    "book": "lectura obra poema* literatura | lectura poema* novel* leyendo releo",
    "favourite": (
        "gusta_mas mas_le_gusta prefiere_* le_encanta mejor | me_encanta me_encantan me_chifla "
        "adoro mi_preferid* mas_me_gusta me_gusta_mas lo_mejor me_flipa podria_comer nada_como"
    ),
    "dislike": (
        "no_le_gusta odia detesta no_soporta molesta aguanta soporta asco disgusta repugna "
        "cae_mal menos_le_gusta | no_me_gusta odio detesto no_soporto me_molesta no_aguanto asco "
        "ni_en_pintura no_me_va no_puedo_con no_trago repugna* me_cae_* sacrilegio paso_de "
        "horrible insoportable me_revienta no_banco no_me_banco ni_loc* ni_muert* ni_de_broma "
        "odioso me_enferma no_puedo_ver"
    ),
    "languages": (
        "materna bilingue idioma_* | ingles frances aleman italiano portugues ruso chino japones "
        "catalan euskera gallego arabe bilingue me_defiendo"
    ),
    "contact": "comunicar* escribir* llamar* | whatsapp llamame escribeme",
    "wedding": (
        "casara enlace compromiso casa_*_cuando | nos_casamos pedida_de_mano luna_de_miel "
        "prometid* casar* casorio se_casa"
    ),
    "travel": (
        "adonde_* ira vacacion* escapada visita* lugar volado avion adonde excursion | reserv* "
        "billetes escapada crucero mochiler* nos_vamos me_voy iremos vuelos viaj* me_voy_*_a "
        "pasajes boletos vuelvo_a caminata mochila avion volado"
    ),
    "commute": (
        "desplaza* transporte ir_al_trabajo llega_al_trabajo se_mueve medio_de_transporte | bici "
        "bicicleta metro autobus tren moto a_pie andando patinete caminando scooter"
    ),
    "study": (
        "titulacion carrera_* curs* licenciatura grado matricul* instituto estudiar facultad "
        "titulo | carrera master doctorado grado licenciatura tesis facultad matricul* instituto "
        "fp oposicion* semestre tecnicatura cursar cursada apuntes inscrib* bachillerato "
        "arranco_*_en me_recibi"
    ),
    "style": (
        "tratar trato respond* contest* tono estilo extension larg* redact* idioma_*_responder "
        "como_*_contestar como_*_escribir cuantas_personas formato_* unidades tutear tutearle "
        "unidad hay_que_darle hay_que_responder hay_que_escribir* respuesta mensajes | breve* "
        "cort* concis* tutea* trata* de_usted de_tu sin_emojis emojis formal informal tono lista "
        "tablas evita prefiero_que vinetas en_espanol directo al_grano celsius para_dos "
        "para_cuatro kilometros sin_rodeos numerad* ejemplos fuentes sin_tecnicismos resumid* "
        "una_frase dos_frases tres_frases"
    ),
    "plans": "pretende tiene_previsto | pienso previsto proxim*",
    "car": (
        "moto maneja motocicleta furgoneta | moto furgoneta volkswagen opel peugeot citroen kia "
        "hyundai nissan mazda dacia fiat bmw audi tesla electrico carnet autocaravana camper "
        "carnet_de_conducir suzuki volvo mini jeep bici bicicleta patinete ciclomotor"
    ),
    "appointment": (
        "medico_cuando dentista_cuando revision consulta hora_con entrevista | revision dentista "
        "consulta hora_con entrevista a_las_* analisis radiografia resonancia vacuna"
    ),
    "medication": (
        "farmaco* tratamiento recet* | recet* inhalador insulina antibiotic* ibuprofeno "
        "paracetamol jarabe gotas pildora* mg medicacion inyeccion* omeprazol losartan "
        "tratamiento recetado receto comprimido*"
    ),
    "phone": "llamar_* numero_* | movil celular",
    "device": (
        "movil celular ordenador computadora portatil dispositivo tableta telefono_*_usa | iphone "
        "android samsung portatil ordenador computadora laptop macbook tableta ipad xiaomi pixel "
        "windows linux fairphone nokia huawei motorola oppo oneplus honor realme xperia redmi"
    ),
    "learning": (
        "aprend* clases formacion aprendiendo idioma_*_estudia | aprend* apuntad* apunte "
        "matriculad* academia taller estudiando me_apunte aprendiendo apunto"
    ),
    "smoking": (
        "cigarr* tabaco fumando fumar | cigarr* vapeo vaper dejado_el_tabaco dejar_de_fumar pucho "
        "puchos atado"
    ),
    "author": "poeta novelista | poeta novelista escritor* autor*",
    "singer": "artista musico banda | artista concierto disco canciones",
    "team": (
        "equipo club hincha aficionad* anima hincha_de de_que_equipo | equipo club hincha "
        "aficionad* soy_del partido abono de_futbol futbol gol cancha"
    ),
    "game": (
        "videojuego* consola juego juega jugar | videojuego* consola playstation xbox nintendo "
        "switch minecraft domino truco ajedrez cartas parchis mus"
    ),
    "colour": "color colores | color",
    "fear": (
        "miedo teme fobia asusta temor asustan panico | miedo temo fobia panico me_asusta* "
        "aterra* me_dan_miedo me_da_miedo vertigo claustrofob* aranas alturas me_aterr* pavor"
    ),
    "goal": (
        "meta objetivo sueno suena ambicion | meta objetivo mi_sueno sueno_con ahorrando algun_dia"
    ),
    "doctor": (
        "dentista medico_de_cabecera doctor* terapeuta | dentista mi_medic* doctor* dra terapeuta "
        "fisioterapeuta oculista dermatolog* cardiolog* ginecolog* traumatolog* pediatra "
        "ortodoncista"
    ),
    "sleep": (
        "duerme dormir despierta levanta | duermo dormir despiert* me_levanto madrug* trasnoch*"
    ),
    "money": (
        "gana sueldo salario presupuesto ingresos | gano sueldo salario presupuesto al_mes euros"
    ),
    "religion": (
        "religion religios* cree_en iglesia | catolic* musulman* judi* budista ate* evangelic* "
        "iglesia mezquita"
    ),
    "size": (
        "mide altura pesa peso talla grupo_sanguineo | mido altura peso_# kilos talla "
        "grupo_sanguineo"
    ),
    "software": (
        "programa* software aplicacion herramienta* editor | programa* software app aplicacion "
        "excel python java photoshop"
    ),
    "project": "proyecto* escribiendo trabajando_en | proyecto* escribiendo construyendo tesis",
    "collection": "colecciona coleccion | coleccion*",
    "volunteering": "voluntari* ong | voluntari* ong protectora cruz_roja",
    "garden": "jardin plantas huerto cultiva | jardin plantas huerto cultivo tomates balcon",
    "deadline": "plazo entrega examen | plazo entrega entregar examen examenes",
    "diet": (
        "dieta vegetarian* vegan* restriccion alimentari* carne come_carne | vegetarian* vegan* "
        "carne pescado gluten celiac* lactosa dieta keto halal kosher ya_no_como dejado_de_comer "
        "deje_de_comer lacteos azucar"
    ),
    "sport": (
        "deporte deportes entrena ejercicio | entreno entrenamiento gimnasio maraton nado nadar "
        "natacion corro correr ciclismo bici senderismo escal* montan* surf remo kayak voley "
        "padel baloncesto golf boxeo judo karate esgrima patin* esqui* buceo tenis futbol "
        "balonmano rugby yoga pilates"
    ),
    "email": "direccion_de_correo correo_electronico |",
    "delivery": "paquete* pedido* enviar entrega* envio* | paquete* pedido* envia* entrega*",
    "nickname": "apodo mote llamarlo llamarla llamarle | llamame me_llaman me_dicen apodo mote",
    "neighbour": "vecino vecina vecinos vecinas",
    "relation": "quien_es quienes_son |",
    "mother": "vieja | mi_vieja",
    "father": "viejo | mi_viejo",
    "grandparents": "abuelit*",
}
