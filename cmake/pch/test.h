// SPDX-License-Identifier: Apache-2.0
// base.h, and what tests include.
#include "cmake/pch/base.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
