"""Why a group is there, in a few words: the cause, and whether it crept in."""

from reports.changes.model import Card
from reports.changes.words import CAUSES


def cause_of(card: Card) -> str:
    """``code changed``; ``slow drift, neither code nor driver changed``"""
    said = CAUSES[card.group.cause]
    return f"slow drift, {said}" if card.word == "drifting" else said
