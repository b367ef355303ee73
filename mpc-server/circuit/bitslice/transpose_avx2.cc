// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose_common.h"
#include "mpc-server/circuit/bitslice/transpose_isa.h"
#include "mpc-server/circuit/bitslice/word_avx2.h"

MPCKDC_DEFINE_TRANSPOSE(transpose_avx2, Transposer<WordAvx2>)
