# SPDX-License-Identifier: Apache-2.0
"""The leak tests use the realms of integration-tests/realm."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
