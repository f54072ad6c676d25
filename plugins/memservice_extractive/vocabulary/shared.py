"""Cues of statements that are the same in every language: names of products, sums of money, and
streets.

Written like the cues of `topics`, and added to those of each language.
"""

from __future__ import annotations

from collections.abc import Mapping

SHARED: Mapping[str, str] = {
    "money": "@sum",
    "delivery": "@street",
    "software": (
        "excel word outlook powerpoint google_docs google_sheets onenote notion obsidian evernote "
        "trello asana jira todoist slack zoom photoshop lightroom illustrator indesign figma canva "
        "blender autocad sketchup sap datev quickbooks salesforce hubspot wordpress shopify "
        "firefox chrome safari vim emacs vscode intellij pycharm eclipse matlab stata spss latex "
        "libreoffice python java javascript typescript rust kotlin swift"
    ),
    "car": (
        "volkswagen vw audi bmw mercedes opel skoda seat renault peugeot citroen dacia fiat alfa "
        "volvo saab toyota honda nissan mazda suzuki subaru mitsubishi hyundai kia ford chevrolet "
        "jeep tesla lada porsche twingo clio golf passat polo corsa astra kangoo berlingo panda "
        "yaris corolla civic"
    ),
    "device": (
        "iphone ipad macbook android samsung galaxy pixel xiaomi huawei nokia fairphone thinkpad "
        "chromebook kindle"
    ),
}
