"""Run a command, and post its output to a webhook unless its exit code is 0.

    WEBHOOK_URL=https://... python notify.py calibrant monitor predictions/ --state monitor.json

The exit code is that of the command.
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
    command = sys.argv[1:]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
    if done.returncode:
        title = f"{shlex.join(command)}: exit code {done.returncode}"
        notify(os.environ["WEBHOOK_URL"], f"{title}\n{done.stdout}{done.stderr}")
    raise SystemExit(done.returncode)
