"""Spanish."""

from __future__ import annotations

CUES = {
    "home": (
        "vive vivo vivimos vives vivir casa piso direccion mudo mude mudamos mudado mudarme "
        "reside resido domicilio"
    ),
    "origin": (
        "es_de soy_de origen nacio naci nacid* viene_de vengo_de crecio creci | soy_de "
        "somos_de origen naci nacid* vengo_de creci"
    ),
    "employer": (
        "trabaja trabajo trabajamos trabajar empresa empleo puesto oficina deje empece despid*"
    ),
    "profession": (
        "profesion oficio ocupacion se_dedica dedica | profesion me_dedico soy_profesor* "
        "soy_medic* soy_ingenier* soy_abogad* soy_enfermer* trabajo_como trabajo_de "
        "soy_estudiante jubilad* camarer* encargad*_de encargad*_en soy_encargad* cociner* "
        "vendedor* mecanic* electricista"
    ),
    "age": "cuantos_anos edad anos_tiene | tengo_#_anos #_anos cumpli",
    "birthday": "cumpleanos nacio naci nacimiento",
    "food": (
        "come comes comer comida comidas carne dieta vegetarian* vegan* desayun* cena cocina "
        "restriccion alimentaria gluten | no_como como_carne como_de_todo come dieta carne "
        "vegetarian* vegan* desayun* ceno cocino gluten celiac* lactosa"
    ),
    "drink": "bebe bebo beber bebida bebidas toma tomo cafe vino cerveza alcohol zumo",
    "allergy": "alergi* intoleran*",
    "health": "enferm* salud medic* diagnos* asma diabet* migran* operacion",
    "partner": "marido mujer esposo esposa pareja novio novia casad* solter*",
    "children": "hijo hijos hija hijas nino ninos nina ninas",
    "mother": "madre mama",
    "father": "padre papa",
    "parents": "padres",
    "brother": "hermano hermanos",
    "sister": "hermana hermanas",
    "siblings": "hermanos",
    "grandparents": "abuela abuelo abuelos",
    "relatives": "tia tio primo prima sobrino sobrina familia",
    "friend": "amigo amiga amigos amigas",
    "boss": "jefe jefa",
    "colleague": "colega* companer*",
    "pets": (
        "mascota mascotas perro perra perros gato gata gatos conejo loro caballo animal "
        "animales raza | mascota mascotas perro perra perros gato gata gatos conejo loro "
        "caballo animal animales tortuga canario hamster pez gatita perrita"
    ),
    "leisure": (
        "aficion* pasatiempo* tiempo_libre hobby deporte deportes practica fin_de_semana "
        "seguir | aficion* tiempo_libre deporte juego jugar jugamos tenis futbol escal* nado "
        "nadar corro correr bailo bailar pinto pintar yoga ajedrez pesca domingos sabados "
        "balonmano baloncesto partido"
    ),
    "music": (
        "instrumento* toca musica banda coro | toco toca guitarra piano violin banda coro canto"
    ),
    "film": "pelicula peliculas cine",
    "book": "libro libros novela leer leo lee",
    "favourite": "favorit* preferid*",
    "languages": (
        "idioma idiomas lengua lenguas habla hablar | hablo habla idioma* lengua* en_espanol "
        "en_ingles en_frances en_aleman"
    ),
    "contact": (
        "contact* localizar | correo email telefono @address escribirme llamarme contactarme"
    ),
    "wedding": "boda casa_cuando casamiento se_casa casarse | boda casamos caso casarme casarnos",
    "travel": (
        "vacaciones viaje viajes viaja viajar pais destino | vacaciones viaje viajamos viajo "
        "viajar volamos ano_que_viene vuelo"
    ),
    "commute": "al_trabajo a_trabajar va_al_trabajo | al_trabajo a_trabajar",
    "study": (
        "estudia estudio estudios universidad carrera escuela | estudio estudie universidad carrera"
    ),
    "style": (
        "debo_responder responderle deberia_responder contestar debo_contestar formato "
        "respuestas recibir | siempre nunca por_favor respóndeme responde contesta cortas "
        "llámame listas"
    ),
    "plans": "planes plan planea | plan planes voy_a vamos_a",
    "car": "coche auto carro vehiculo conduce | coche auto carro conduzco seat toyota renault ford",
    "appointment": "cita citas atiende turno | cita a_las_#",
    "medication": "medicamento* medicina* pastilla* toma | pastilla* medicamento* tomo",
    "email": "correo email electronico | @mail correo",
    "phone": "telefono numero movil celular | @number telefono",
    "learning": "estudiando aprende curso | curso clases aprendo apuntado",
    "smoking": "fuma fumador* | fumo fumar tabaco",
    "author": "autor* escritor*",
    "singer": "cantante grupo",
}
WEAK = (
    "proximo proxima usuario usuaria nombre llama llaman llamo gusta gustan gusto encanta "
    "prefiere prefiero ahora actualmente hoy suele todavia por_favor dime sabe sabes persona "
    "gente cosa usa quiere necesita nuevo nueva propio dia tiempo va hace hacer tiene tienen "
    "tengo hay mejor tipo como_se opina piensa cree opinion parece adonde posee toca practica "
    "sufre padece lleva exactamente fecha ano actualidad mes"
)
SUBJECT = "yo nosotros nosotras"
UNREAL = (
    "si_me si_fuera si_yo si_tuviera imagina imaginate imaginemos supongamos en_mi_historia "
    "en_mi_novela "
    "el_protagonista mi_personaje sone si_*iera si_*ara si_*iese si_me_*ara si_me_*iera "
    "la_protagonista protagonista personaje heroina en_la_novela en_la_pelicula en_la_serie "
    "con_un_cuento mi_cuento mi_novela escribo_un_cuento escribiendo_un_cuento un_relato "
    "en_el_libro en_la_peli en_un_libro era_broma en_broma bromeo es_broma joda"
)
PERSON = ""
NAME = r"(?:[Mm]e llamo|[Mm]i nombre es|[Ss]oy|[Aa]quí|[Hh]abla) ([A-ZÁÉÍÓÚÑ]\w+)"
