"""Countries and large regions. A person can live in one of them and in a city at the same time."""

from __future__ import annotations

_NAMES = """
africa|america|asia|australia|europe|england|scotland|wales|ireland|northern ireland|britain|great \
britain|uk|united kingdom|us|usa|states
united \
states|germany|austria|switzerland|france|spain|portugal|italy|greece|turkey|netherlands|holland|belgium|luxembourg|denmark|sweden
norway|finland|iceland|poland|czech \
republic|czechia|slovakia|hungary|romania|bulgaria|serbia|croatia|slovenia|ukraine|russia|estonia
latvia|lithuania|israel|egypt|morocco|tunisia|ghana|nigeria|kenya|ethiopia|south \
africa|india|pakistan|bangladesh|china|japan|taiwan
south korea|korea|thailand|vietnam|malaysia|indonesia|philippines|new \
zealand|canada|mexico|brazil|argentina|chile|peru|colombia|cuba|iran
iraq|saudi arabia|uae|california|texas|florida|oregon|washington \
state|colorado|arizona|nevada|utah|ohio|michigan|illinois|georgia|virginia
massachusetts|new jersey|pennsylvania|tuscany|bavaria|catalonia|quebec|ontario
afrika|amerika|asien|australien|europa|england|schottland|irland|großbritannien|vereinigten \
königreich|vereinigten staaten|deutschland
österreich|schweiz|frankreich|spanien|italien|griechenland|türkei|niederlanden|niederlande|belgien|luxemburg|dänemark|schweden|norwegen
finnland|island|polen|tschechien|slowakei|ungarn|rumänien|bulgarien|serbien|kroatien|slowenien|russland|ägypten|marokko|südafrika|indien
china|südkorea|kanada|mexiko|brasilien|argentinien|neuseeland|bayern|sachsen|hessen|thüringen|brandenburg|niedersachsen|nordrhein-westfalen
baden-württemberg|schleswig-holstein|rheinland-pfalz|saarland|mecklenburg-vorpommern|sachsen-anhalt
中国|美国|英国|德国|法国|日本|韩国|加拿大|澳大利亚|新西兰|新加坡|意大利|西班牙|俄罗斯|印度|瑞士|瑞典|欧洲|亚洲|非洲|台湾|四川|广东|浙江|江苏|山东|湖南|湖北|福建|云南
日本|アメリカ|イギリス|ドイツ|フランス|中国|韓国|カナダ|オーストラリア|イタリア|スペイン|インド|台湾|ヨーロッパ|アジア|北海道|九州|四国|関東|関西
"""
LARGE = frozenset(
    name.casefold() for line in _NAMES.split("\n") for name in line.split("|") if name
)


def is_large(name: str) -> bool:
    """Whether it is a country or a large region."""
    folded = " ".join(name.casefold().split())
    for article in ("the ", "der ", "den ", "die "):
        folded = folded.removeprefix(article)
    return folded in LARGE
