from dataclasses import replace

from orchestrator.analysis.shared import and_words, shared_processors
from tests.results_fixture import device, hardware, lavapipe


def test_drivers_of_one_machine_are_named() -> None:
    found = shared_processors([device("a"), lavapipe("b"), hardware("c")])
    assert [s.sentence for s in found] == [
        "llvmpipe and lavapipe are separate drivers of this machine's processor (cpu@buildhost); "
        "trials on it are serialised"
    ]
    assert found[0].device_ids == {"a", "b"}


def test_virtual_phones_on_it_are_named_apart() -> None:
    phone = device("c", name="Galaxy", virtual=True)
    both = shared_processors([device("a"), lavapipe("b"), phone])[0]
    assert both.sentence.endswith("serialised; the virtual phone Galaxy runs on it, too")
    two = shared_processors([device("a"), lavapipe("b"), phone, replace(phone, name="Pixel")])[0]
    assert two.sentence.endswith("the virtual phones Galaxy and Pixel run on it, too")
    one = shared_processors([device("a"), phone])[0]
    assert one.sentence == "llvmpipe and Galaxy share cpu@buildhost; trials on it are serialised"


def test_own_processors_are_not_shared() -> None:
    assert shared_processors([device("a"), replace(lavapipe("b"), resource="cpu@other")]) == ()


def test_and_words() -> None:
    assert [and_words(w) for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
