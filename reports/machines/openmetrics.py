"""Samples as OpenMetrics text that Prometheus' older text parser takes, too: gauges only, no timestamps.

node_exporter's textfile collector and the pushgateway read that older format, where ``# UNIT`` and ``# EOF``
are comments. https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from reports.text import visible

MAX_LABEL = 200
EOF = "# EOF\n"


@dataclass(slots=True)
class Gauge:
    """One metric family."""

    name: str
    """With ``unit`` at its end."""
    help: str
    unit: str = ""
    _samples: dict[str, float] = field(default_factory=dict[str, float])

    def set(self, value: float, **labels: str) -> None:
        """What is not finite is no sample: absent says it better than NaN. One set of labels has one value,
        the larger one where two names look the same once they are cut."""
        if math.isfinite(value):
            key = _labels(labels)
            self._samples[key] = max(value, self._samples.get(key, value))

    def lines(self) -> list[str]:
        """None without a sample."""
        if not self._samples:
            return []
        head = [f"# TYPE {self.name} gauge"]
        head += [f"# UNIT {self.name} {self.unit}"] if self.unit else []
        head.append(f"# HELP {self.name} {_escaped(self.help)}")
        return head + [f"{self.name}{labels} {_number(v)}" for labels, v in self._samples.items()]


def exposition(gauges: Iterable[Gauge]) -> str:
    return "".join(f"{line}\n" for gauge in gauges for line in gauge.lines()) + EOF


def _labels(labels: dict[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(visible(value, MAX_LABEL))}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
