# SPDX-License-Identifier: Apache-2.0
"""How a realm starts that an intruder will be in. Not in conftest.py: several folders have one."""

import pkinit_ca
import realm as realm_module


def start(folder, extra_server='', **options):
    # Whose certificates the servers believe.
    authority = pkinit_ca.Authority(folder / 'pkinit', realm_module.Options().realm)
    live = realm_module.Realm(folder / 'realm', realm_module.Options(
        extra_server=f'{extra_server}\n[pkinit]\nanchors = "{authority.anchor}"\n', **options))
    live.authority = authority
    # The servers as they are get the file too, and must not care.
    live.env['MPCKDC_CONTROL_FILE'] = str(live.dir / 'dropped-defences')
    live.create()
    return live
