"""Run a command, and post its output to a webhook unless its exit code is 0.

    WEBHOOK_URL=https://... python notify.py calibrant monitor predictions/ --state monitor.json

The exit code is that of the command, or 127 if it cannot be started.
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.request


def notify(url, text):
    """Post a text as Slack and Mattermost accept it; an error of the server raises an exception."""
    body = json.dumps({"text": text}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()


if __name__ == "__main__":
    command, url = sys.argv[1:], os.environ["WEBHOOK_URL"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        code, output = done.returncode, done.stdout + done.stderr
    except OSError as error:  # such as a command that is not in the PATH of cron
        code, output = 127, f"{error}\n"
    print(output, end="")
    if code:
        notify(url, f"{shlex.join(command)}: exit code {code}\n{output}")
    raise SystemExit(code)
