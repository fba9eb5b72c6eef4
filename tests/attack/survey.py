"""Fit many cases and list all findings, grouped by class, one line each.

``python -m tests.attack.survey small SVC 0 200`` from the root of the repository: kind, estimator,
first and last seed.
"""

from __future__ import annotations

import re
import sys
import time
from collections import defaultdict

from . import checks
from .generators import SHAPES, large_case, medium_case, small_case


def worst(finding: str) -> float:
    """Return the last number of a finding, which is what is true."""
    numbers = re.findall(r"(?:true|is) (-?[0-9.]+(?:e[-+]?[0-9]+)?|inf)", finding)
    return float(numbers[-1]) if numbers else 0.0


def main() -> None:
    """Run what the command line asks for."""
    kind, estimator, first, last = sys.argv[1:5]
    chosen = sys.argv[5].split(",") if len(sys.argv) > 5 else sorted(SHAPES)
    found, total, start = defaultdict(list), 0, time.time()
    for seed in range(int(first), int(last)):
        for shape in chosen:
            if kind == "small":
                case = small_case(shape, estimator, seed)
                findings = checks.small(case)
            elif kind == "medium":
                case = medium_case(shape, seed)
                findings = checks.large(case)
            else:
                case = large_case(shape, seed)
                findings = checks.large(case, 60.0)
            total += 1
            for finding in findings:
                found[finding.split(":")[0]].append((case, finding))
    print(f"{total} fits in {time.time() - start:.0f} s")
    for name, entries in sorted(found.items()):
        print(f"== {name}: {len(entries)}")
        for case, finding in sorted(entries, key=lambda entry: -worst(entry[1]))[:12]:
            print(f"   {finding[:200]}\n      {case}")


if __name__ == "__main__":
    main()
