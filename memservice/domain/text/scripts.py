"""Unicode ranges of scripts, for character classes of regular expressions.

The index needs whole blocks, so that no character of a script is dropped. Recognition of languages
and of repeated words needs letters only. Changing a range of the index changes its terms: stored
texts must then be indexed again.
"""

HAN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
KANA = "\u3040-\u309f\u30a0-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"
KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
HIRAGANA = "\u3040-\u309f"
OTHER_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
    "\u3100-\u312f\u31a0-\u31bf"  # Bopomofo
    "\ua000-\ua4cf"  # Yi
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
)
"""The other scripts without spaces between words."""

HAN_LETTERS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f々〇"
HANGUL_SYLLABLES = "\uac00-\ud7a3"
HIRAGANA_LETTERS = "\u3041-\u3096"
KATAKANA_LETTERS = "\u30a1-\u30fa\u30fc\uff66-\uff9f"
KANA_LETTERS = HIRAGANA_LETTERS + KATAKANA_LETTERS

UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
)
"""Letters of scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Bopomofo,
Han."""
