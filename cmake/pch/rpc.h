// SPDX-License-Identifier: Apache-2.0
// base.h, and what files include that speak gRPC.
#include "cmake/pch/base.h"
#include <grpcpp/grpcpp.h>
#include "proto/admin.grpc.pb.h"
#include "proto/kdc_key.grpc.pb.h"
