# SPDX-License-Identifier: Apache-2.0
"""How a realm starts that an intruder will be in. Not in conftest.py: several folders have one."""

import realm as realm_module


def start(folder, **options):
    live = realm_module.Realm(folder / 'realm', realm_module.Options(**options))
    # The servers as they are get the file too, and must not care.
    live.env['MPCKDC_CONTROL_FILE'] = str(live.dir / 'dropped-defences')
    live.create()
    return live
