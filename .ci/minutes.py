"""Prints the minutes that each suite took, from pytest's JUnit file."""

import sys
from collections import Counter
from xml.etree import ElementTree

minutes: Counter[str] = Counter()
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):  # noqa: S314 - our own
    suite = ".".join(case.attrib["classname"].split(".")[1:3])
    minutes[suite] += float(case.attrib["time"]) / 60
for suite, spent in minutes.most_common():
    print(f"{spent:6.2f} min  {suite}")
