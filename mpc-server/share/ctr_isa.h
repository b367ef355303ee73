// SPDX-License-Identifier: Apache-2.0
// What each instruction set's counter-mode file defines. Internal.
#ifndef MPC_SERVER_SHARE_CTR_ISA_H_
#define MPC_SERVER_SHARE_CTR_ISA_H_

#include "mpc-server/share/ctr_stream.h"

#define MPCKDC_DECLARE_CTR(ISA)                                                               \
  namespace ISA {                                                                             \
  void FillXor(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position, \
               uint8_t* out, size_t blocks);                                                  \
  void Fill(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,        \
            size_t blocks);                                                                   \
  }

namespace mpckdc {
MPCKDC_DECLARE_CTR(ctr_portable)
MPCKDC_DECLARE_CTR(ctr_aesni)
MPCKDC_DECLARE_CTR(ctr_vaes256)
MPCKDC_DECLARE_CTR(ctr_vaes512)
namespace ctr_portable {
void Expand(const uint8_t key[16], CtrKey* out);
}
namespace ctr_aesni {
void Expand(const uint8_t key[16], CtrKey* out);  // for VAES too
}
}  // namespace mpckdc

#undef MPCKDC_DECLARE_CTR

#endif  // MPC_SERVER_SHARE_CTR_ISA_H_
