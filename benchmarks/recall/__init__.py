"""How well a store finds the evidence, by kind of conversation; README.md has the figures."""
