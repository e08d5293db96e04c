"""The rows of the table: what each one is made of, its gate and its aim. The gates are those of the design."""

from collections.abc import Callable
from dataclasses import dataclass

# Requests of 20 s in a month, and the price of one.
MONTHLY = 30.4 * 86400 / 20 * 0.5e-6
# The hello of each hour, which is sent, received and deleted.
HELLOS = 30.4 * 24 * 3 * 0.5e-6
# What there is to measure, and the first words of the names that it has to print. `functions` counts too.
MEASURES = {
    "counted": ("deploy", "approved", "drift", "zip"),
    "functions": ("deploy", "approved", "drift", "zip", "function", "node"),
    "latency": ("latency",),
    "memory": ("job",),
    "idle": ("idle",),
    "copy": ("copy", "skopeo"),
    "check": ("check_real", "check_generated"),
    "egress": ("egress",),
}
NEVER = (
    ("Terraform job over the plain command", "not measured yet"),
    ("fleet planning and dispatch", "not measured yet: nothing times how a channel deploys its installs"),
    ("fixed cost of an idle tenant", "a bill is not a measurement; the template's tests check it"),
)


@dataclass(frozen=True)
class Row:
    """One row: the median of `names[0]`, or its ratio to that of `names[1]`, times `factor`."""

    what: str
    gate: float | None
    aim: str
    names: tuple[str, ...]
    show: Callable[[float], str]
    factor: float = 1
    # What is added to the value.
    plus: float = 0
    # Counted, not timed; anything else is measured.
    counted: bool = False

    def value(self, medians):
        """Returns the row's value."""
        first, *second = (medians[name] for name in self.names)
        return self.factor * (first / second[0] if second else first) + self.plus

    def shown_gate(self):
        """Returns the gate as the value is shown."""
        return "" if self.gate is None else self.show(self.gate)


def ratio(value):
    """Shows a share as one part of a whole."""
    return f"1/{1 / value:.1f}" if 0 < value < 1 else f"{value:.2f}"


def plain(digits, unit=""):
    """Returns what shows a number with its unit."""
    return lambda value: f"{value:.{digits}f} {unit}".strip()


def dollars(digits):
    """Returns what shows a price."""
    return lambda value: f"${value:.{digits}f}"


def rows(large):
    """Returns all rows; the largest layer of an image has `large` MiB."""
    return [*_functions(), *_runner(), *_deploy(), *_copies(large), *_check(), *_egress()]


def _functions():
    return [
        Row("function, cold start CPU against Node", 1 / 12, "1/30", ("function.cold_cpu", "node.cold_cpu"), ratio),
        Row("function, cold start CPU", None, "", ("function.cold_cpu",), plain(1, "ms")),
        Row("function, zip (the largest)", 4, "1.5 MB", ("zip.largest",), plain(2, "MB"), counted=True),
        Row("function, resident memory", 12, "8 MB", ("function.memory",), plain(1, "MB")),
        Row("function, warm CPU", 1, "0.3 ms", ("function.warm_cpu",), plain(2, "ms")),
    ]


def _runner():
    started = "order sent to job started"
    milliseconds = plain(1, "ms")
    return [
        Row(f"{started}, p50, no sandbox", 5, "2 ms", ("latency.none.p50",), milliseconds),
        Row(f"{started}, p99, no sandbox", 25, "10 ms", ("latency.none.p99",), milliseconds),
        Row(f"{started}, p50, bubblewrap", 5, "2 ms", ("latency.bubblewrap.p50",), milliseconds),
        Row(f"{started}, p99, bubblewrap", 25, "10 ms", ("latency.bubblewrap.p99",), milliseconds),
        # The gates are for an idle runner. Without a pause, jobs use up the boxes that are made in advance.
        Row("the same without a pause between jobs, p50", None, "", ("latency.bubblewrap.stream.p50",), milliseconds),
        Row("the same without a pause between jobs, p99", None, "", ("latency.bubblewrap.stream.p99",), milliseconds),
        Row("of the job's shell itself (taken off above)", None, "", ("latency.shell",), milliseconds),
        Row("running job, memory of its box and its shell", 15, "5 MB", ("job.memory",), plain(1, "MB")),
        Row("idle runner, requests in 20 s", 1.1, "1", ("idle.requests",), plain(2)),
        Row("idle runner, memory", 12, "6 MB", ("idle.memory",), plain(1, "MB")),
        Row("idle runner, CPU a minute", 100, "5 ms", ("idle.cpu",), plain(0, "ms")),
        Row("idle runner, reports (table writes) between two hellos", 0, "0", ("idle.reports",), plain(0)),
        Row("idle install, queue requests of a month", 0.07, "$0.004", ("idle.requests",), dollars(3), MONTHLY, HELLOS),
    ]


def _deploy():
    each = "component deploy"
    return [
        Row(f"{each}, write units", 16, "8", ("deploy.write_units",), plain(1), counted=True),
        # The gate is for a deploy in which no transaction meets another one.
        Row(
            f"{each}, write units of cancelled transactions",
            None,
            "",
            ("deploy.cancelled_write_units",),
            plain(1),
            counted=True,
        ),
        # They depend on how long the components take, and are not in the write units above.
        Row(f"{each}, write units of contacts", None, "", ("deploy.contact_write_units",), plain(1), counted=True),
        # The sum of the three: a tenth above what it was when the gate was set.
        Row(f"{each}, all write units", 20.4, "", ("deploy.all_write_units",), plain(1), counted=True),
        Row(f"{each}, read units", None, "", ("deploy.read_units",), plain(1), counted=True),
        Row(f"{each}, transitions", 3, "1.2", ("deploy.transitions",), plain(2), counted=True),
        Row(f"{each}, invokes beside reports", 2, "", ("deploy.invokes",), plain(1), counted=True),
        Row(f"{each}, queue requests", 8, "", ("deploy.queue_requests",), plain(1), counted=True),
        # They depend on how long the components take.
        Row(f"{each}, renewals of leases", None, "", ("deploy.renewals",), plain(1), counted=True),
        Row(f"{each}, cost", 0.0002, "$0.00005", ("deploy.cost",), dollars(6), counted=True),
        *_checked("approved change", "approved"),
        *_checked("drift check of a component", "drift"),
    ]


def _checked(each, name):
    """Returns the rows of what has no gates of its own in the design: those of a component deploy count."""
    return [
        Row(f"{each}, write units", 16, "", (f"{name}.write_units",), plain(1), counted=True),
        Row(f"{each}, transitions", 3, "", (f"{name}.transitions",), plain(2), counted=True),
        Row(f"{each}, invokes beside reports", 2, "", (f"{name}.invokes",), plain(1), counted=True),
        # The design has no gate for these requests.
        Row(f"{each}, queue requests", None, "", (f"{name}.queue_requests",), plain(1), counted=True),
        Row(f"{each}, cost", 0.0002, "", (f"{name}.cost",), dollars(6), counted=True),
    ]


def _copies(large):
    cases = (
        ("big", f"one layer of {large} MiB"),
        ("many", "200 layers of 64 KiB"),
        ("shared", "4 new MiB of 84"),
        ("unchanged", "nothing new"),
    )
    against = [row for case, name in cases for row in _against_skopeo(case, f"image copy, {name}")]
    memory = f"image copy, memory of {large} MiB"
    return [
        *against,
        Row("image copy, 4 new MiB of 84, sent", 4.1, "4", ("copy.shared.sent",), plain(2, "MiB"), counted=True),
        Row(f"{memory} against 10 MiB", 1.2, "1", ("copy.big.memory", "copy.small.memory"), plain(2, "x")),
        Row(memory, 24, "8 MiB", ("copy.big.memory",), plain(1, "MiB")),
        Row("the same within the runner, memory", 24, "", ("copy.runner.memory",), plain(1, "MiB")),
    ]


def _against_skopeo(case, name):
    names = [(f"copy.{case}.{what}", f"skopeo.{case}.{what}") for what in ("wall", "cpu", "memory")]
    return [
        Row(f"{name}, wall against skopeo", 1, "0.7", names[0], plain(2, "x")),
        Row(f"{name}, CPU against skopeo", None, "0.5", names[1], plain(2, "x")),
        Row(f"{name}, memory against skopeo", 1 / 5, "1/10", names[2], ratio),
    ]


def _check():
    return [
        Row("app check of the largest real app, p50", 50, "", ("check_real.wall",), plain(1, "ms")),
        Row("app check of 1,000 components, p50", 1000, "", ("check_generated.wall",), plain(0, "ms")),
    ]


def _egress():
    # Twice the copies of a direct connection: on two busy cores at best twice its time, on four about the same.
    times = plain(2, "x")
    return [Row("tunnel out of a box, time against direct", 3, "1.4", ("egress.direct", "egress.tunnel"), times)]
