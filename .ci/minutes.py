"""Prints the minutes that each suite took, from JUnit files of pytest.

Suites run beside each other, so that the sum is more than the time that passed.
"""

import sys
from collections import Counter
from xml.etree import ElementTree

minutes: Counter[str] = Counter()
for path in sys.argv[1:]:
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 - our own
        suite = ".".join(case.attrib["classname"].split(".")[1:3])
        minutes[suite] += float(case.attrib["time"]) / 60
for suite, spent in minutes.most_common():
    print(f"{spent:6.2f} min  {suite}")
