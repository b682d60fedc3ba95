"""A JUnit ``testsuite`` with its totals, of the elements and attributes that Jenkins' strictest reader takes
(junit-10: a ``testcase`` has no properties, ``testsuites`` no ``skipped``)."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping

from reports.text import visible, visible_block

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Suite:
    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self._properties = properties
        self._cases: list[ET.Element] = []
        self._time_s = 0.0

    def case(self, name: str, group: str, time_s: float = 0.0) -> ET.Element:
        """``group``: what readers show it under, a kernel mostly."""
        made = ET.Element(
            "testcase",
            {
                "classname": visible(f"{self.name.split(' / ')[0]}.{group}"),
                "name": visible(name),
                "time": f"{time_s:.3f}",
            },
        )
        self._time_s += time_s
        self._cases.append(made)
        return made

    def element(self, started_at: str) -> ET.Element:
        suite = ET.Element(
            "testsuite",
            {
                "name": visible(self.name),
                "tests": str(len(self._cases)),
                "failures": str(self._count("failure")),
                "errors": str(self._count("error")),
                "skipped": str(self._count("skipped")),
                "time": f"{self._time_s:.3f}",
                "timestamp": _timestamp(started_at),
            },
        )
        if self._properties:
            properties = ET.SubElement(suite, "properties")
            for name, value in self._properties.items():
                ET.SubElement(properties, "property", {"name": name, "value": visible(value)})
        suite.extend(self._cases)
        return suite

    def _count(self, tag: str) -> int:
        return sum(case.find(tag) is not None for case in self._cases)


def child(case: ET.Element, tag: str, message: str, kind: str = "", text: str = "") -> None:
    """``failure``, ``error`` or ``skipped``."""
    attributes = {"message": visible(message)}
    if kind:
        attributes["type"] = visible(kind)
    ET.SubElement(case, tag, attributes).text = visible_block(text) if text else None


def printed(case: ET.Element, tag: str, text: str, limit: int) -> None:
    """``system-out`` or ``system-err``."""
    ET.SubElement(case, tag).text = visible_block(text, limit)


def document(name: str, suites: Iterable[Suite], started_at: str) -> str:
    """Well-formed XML 1.0, whatever the names hold."""
    root = ET.Element("testsuites", {"name": visible(name)})
    root.extend(suite.element(started_at) for suite in suites)
    for total in ("tests", "failures", "errors"):
        root.set(total, str(sum(int(s.get(total, "0")) for s in root)))
    ET.indent(root, " ")
    return HEAD + ET.tostring(root, encoding="unicode") + "\n"


def _timestamp(utc: str) -> str:
    """Without a zone, as the format has it."""
    return visible(utc)[:19]
