// SPDX-License-Identifier: Apache-2.0
//
// Lines for systemd's journal with the fields of log.h, so that `journalctl MPC_REQUEST=...` finds
// them. What standard error would carry has none.
#ifndef MPC_SERVER_SERVICE_JOURNAL_H_
#define MPC_SERVER_SERVICE_JOURNAL_H_

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

namespace mpckdc {

// Whether systemd connected it (sd_journal_stream_fd, JOURNAL_STREAM).
bool StderrIsJournal();

// libsystemd's calls are thread-safe.
class JournalSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& msg) override;
  void flush_() override {}
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_JOURNAL_H_
