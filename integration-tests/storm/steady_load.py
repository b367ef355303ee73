# SPDX-License-Identifier: Apache-2.0
"""Logins at a steady rate for as long as one likes, each of them in a log (soak_samples.read_logins)."""

import json
import signal
import subprocess

import storm

AFTER_STORM = 40  # seconds until login-storm must have written its report


class SteadyLoad:
    """login-storm, which Ctrl-C at this program does not reach. `with` stops it.

    `more`: its other options. Its users are the first `number` of the keytab, or all. `report` when it was stopped: its own,
    or None."""

    def __init__(self, live, out, enctype, rate, number=None, seed=1, more=(),
                 keytab='users.keytab'):
        self.log, self._report = out / 'logins.log', out / 'storm.json'
        self.report = None
        for file in (self.log, self._report):
            file.unlink(missing_ok=True)
        argv = [storm.program(), '--kdc', f'127.0.0.1:{live.ports.kdc}', '--realm', live.name,
                '--keytab', live.dir / keytab, '--enctype', enctype, '--rate', rate,
                '--duration', '24h', '--seed', seed, '--log', self.log, '--json', self._report,
                *(['--number', number] if number else []), *more]
        with open(out / 'logins.txt', 'wb') as text:
            self._process = subprocess.Popen(
                [str(part) for part in argv], env=live.env, stdin=subprocess.DEVNULL, stdout=text,
                stderr=text, start_new_session=True)

    def stop(self):
        """Its report, when what is in flight has ended."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(AFTER_STORM)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._report.exists():
            self.report = json.loads(self._report.read_text())
        return self.report

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
