// SPDX-License-Identifier: Apache-2.0
// For tests of what speaks gRPC.
#include "cmake/pch/rpc.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
