"""Numbers in words, by language, as patterns for folded text."""

from __future__ import annotations

_SMALL = {
    "de": "eine?n?r?|zwei|drei|vier|funf|sechs|sieben|acht|neun|zehn|elf|zwolf",
    "en": "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve",
    "es": "un[oa]?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce",
    "fr": "une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze",
    "it": "un[oa]?|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici",
    "pt": "uma?|dois|duas|tres|quatro|cinco|seis|sete|oito|nove|dez|onze|doze",
    "ru": (
        "од(?:ин|на|ному)|дв[ае]|три|четыре|пять|шесть|семь|восемь|девять|десять|одиннадцать"
        "|двенадцать"
    ),
}
_LARGE = {
    "de": (
        r"(?:drei|vier|funf|sech|sieb|acht|neun)zehn"
        r"|(?:(?:ein|zwei|drei|vier|funf|sechs|sieben|acht|neun)und)?"
        r"(?:zwanzig|dreissig|vierzig|funfzig|sechzig|siebzig|achtzig|neunzig)|hundert"
    ),
    "en": (
        "(?:thir|four|fif|six|seven|eigh|nine)teen"
        "|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
        "(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?|hundred"
    ),
    "es": (
        "trece|catorce|quince|dieci[a-z]{3,5}|veinte|veinti[a-z]{2,6}"
        "|(?:treinta|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa)(?: y [a-z]{2,6})?|cien"
    ),
    "fr": (
        "treize|quatorze|quinze|seize|dix-(?:sept|huit|neuf)"
        "|(?:vingt|trente|quarante|cinquante|soixante|quatre-vingts?)"
        "(?:[- ](?:et[- ])?(?:une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze"
        "|treize|quatorze|quinze|seize)(?:-(?:sept|huit|neuf))?)?|cent"
    ),
    "it": (
        "(?:tre|quattor|quin|se)dici|dicia[a-z]{4,6}|diciotto"
        "|(?:vent|trent|quarant|cinquant|sessant|settant|ottant|novant)[a-z]{1,8}|cento"
    ),
    "pt": (
        "treze|catorze|quatorze|quinze|dez[ea]s[a-z]{3,4}|dezoito"
        "|(?:vinte|trinta|quarenta|cinquenta|sessenta|setenta|oitenta|noventa)(?: e [a-z]{2,6})?"
        "|cem"
    ),
    "ru": (
        "(?:три|четыр|пят|шест|сем|восем|девят)надцать"
        "|(?:двадцать|тридцать|сорок|пятьдесят|шестьдесят|семьдесят|восемьдесят|девяносто)"
        "(?: [а-я]{3,6})?|сто"
    ),
}
_UNSPACED = "[一二三四五六七八九十百两]{1,4}"


def number(language: str, *, small: bool = True) -> str:
    """A number of up to three digits or in words; without `small` none up to twelve in words."""
    if language not in _LARGE:
        return rf"(?:\d{{1,3}}|{_UNSPACED})" if language in ("zh", "ja") else r"\d{1,3}"
    words = f"{_LARGE[language]}|{_SMALL[language]}" if small else _LARGE[language]
    return rf"(?:\d{{1,3}}|{words})"
