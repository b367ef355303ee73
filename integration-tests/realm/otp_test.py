# SPDX-License-Identifier: Apache-2.0
"""One-time passwords: a login whose pre-auth the servers cannot check, under the gate kdc-trusted."""

import pytest

import radius
import realm as realm_module

SERVICE = 'host/www.example.com'


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    made = realm_module.Realm(tmp_path_factory.mktemp('otp') / 'realm')
    server = radius.Server(made.dir / 'radius', accepted='123456')

    def offer_otp():
        with open(made.kdc_dir / 'kdc.conf', 'a') as conf:
            conf.write(f'[otp]\n    DEFAULT = {{\n        server = {made.dir / "radius"}\n'
                       '        strip_realm = true\n    }\n')
        server.start()
    try:
        made.create(offer_otp)
        made.add_service(SERVICE)
        made.enroll('armor', 'its password')
        made.kinit('armor', 'its password', ccache='armor')
        yield made
    finally:
        made.stop()
        server.stop()


def otp_login(live, name, code):
    return live.kinit(name, code, '-T', f'FILE:{live.dir / "armor"}', check=False)


def test_one_time_password(live, new_user):
    name, _ = new_user(live)
    live.kadmin_local(f'setstr {name} otp []')
    refused = otp_login(live, name, '123456')
    assert refused.returncode, 'the default gate wants a timestamp, and OTP has none'
    live.admin('policy', name, '--gate', 'kdc-trusted')
    assert otp_login(live, name, '654321').returncode
    accepted = otp_login(live, name, '123456')
    assert accepted.returncode == 0, accepted.stdout
    live.kvno(SERVICE)
