// SPDX-License-Identifier: Apache-2.0
//
// The keys of which the three servers do not hold the same record: each is told to status and
// observer once, until it is the same again. The engine's thread's.
#ifndef MPC_SERVER_AGREE_DIFFERENT_RECORDS_H_
#define MPC_SERVER_AGREE_DIFFERENT_RECORDS_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/agree/record_tags.h"

namespace mpckdc {

class DifferentRecords {
 public:
  DifferentRecords(SharedStatus* status, EngineObserver* observer)
      : status_(status), observer_(observer) {}

  // What a batch has found about a key. Why no job may use it, which names key and server; empty
  // where the three are the same.
  std::string Note(const KeyInfo& key, const std::optional<Difference>& found);

 private:
  void Tell();

  SharedStatus* const status_;
  EngineObserver* const observer_;
  absl::flat_hash_map<Handle, std::string> texts_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_DIFFERENT_RECORDS_H_
