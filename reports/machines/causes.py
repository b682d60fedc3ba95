"""Why a group is there, in a few words: the cause, and whether it crept in."""

from reports.changes.model import Card
from reports.changes.words import CAUSES

DRIFT = "slow drift"
"""Stands in the sentence of a group that only the scan over many nights found."""


def cause_of(card: Card) -> str:
    """``code changed``; ``slow drift, neither code nor driver changed``"""
    said = CAUSES[card.group.cause]
    return f"{DRIFT}, {said}" if f"(a {DRIFT}" in card.group.sentence else said
