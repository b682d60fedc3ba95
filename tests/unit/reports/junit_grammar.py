"""What the strictest readers of JUnit take, as a small grammar.

The elements and attributes are those of Jenkins' xunit plugin (junit-10), which refuses a whole file for any
other; times and timestamps as its patterns have them. GitLab's and GitHub's readers take a subset.
"""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

TIME = re.compile(r"\d+\.\d{3}")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
NUMBER = re.compile(r"\d+")
TEXT = re.compile(r".+", re.DOTALL)
ANY = re.compile(r".*", re.DOTALL)
RESULTS = ("failure", "error", "skipped")

ATTRIBUTES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "testsuites": {"name": TEXT, "tests": NUMBER, "failures": NUMBER, "errors": NUMBER},
    "testsuite": {
        "name": TEXT,
        "tests": NUMBER,
        "failures": NUMBER,
        "errors": NUMBER,
        "skipped": NUMBER,
        "time": TIME,
        "timestamp": STAMP,
    },
    "testcase": {"name": TEXT, "classname": TEXT, "time": TIME},
    "property": {"name": TEXT, "value": ANY},
    "failure": {"message": ANY, "type": TEXT},
    "error": {"message": ANY, "type": TEXT},
    "skipped": {"message": ANY},
    "properties": {},
    "system-out": {},
    "system-err": {},
}
"""All required."""
CHILDREN = {
    "testsuites": ("testsuite",),
    "testsuite": ("properties", "testcase"),
    "testcase": (*RESULTS, "system-out", "system-err"),
    "properties": ("property",),
}


def parse(text: str) -> ET.Element:
    """Strictly: what is not well-formed raises, and so does what is not of the format."""
    tree: ET.ElementTree[ET.Element] = ET.ElementTree(file=io.BytesIO(text.encode("utf-8")))
    root = tree.getroot()
    assert root.tag == "testsuites"
    _check(root)
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(name) == str(sum(c.find(tag) is not None for c in cases))
    for name in ("tests", "failures", "errors"):
        assert root.get(name) == str(sum(int(s.get(name, "")) for s in root))
    return root


def _check(element: ET.Element) -> None:
    wanted = ATTRIBUTES[element.tag]
    assert set(element.attrib) == set(wanted), (element.tag, element.attrib)
    for name, pattern in wanted.items():
        assert pattern.fullmatch(element.attrib[name]), (element.tag, name, element.attrib[name])
    order = CHILDREN.get(element.tag, ())
    tags = [c.tag for c in element]
    assert tags == sorted(tags, key=order.index), (element.tag, tags)
    if element.tag == "testcase":
        assert sum(t in RESULTS for t in tags) <= 1
        assert max((tags.count(t) for t in tags), default=0) <= 1
    for child in element:
        _check(child)
