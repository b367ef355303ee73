// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr char kFirstLine[] = "mpc-kdc-database 1";

std::string PathIn(const std::string& folder) { return folder + "/database"; }

std::string LsnText(uint64_t lsn) { return absl::StrFormat("%X/%X", lsn >> 32, lsn & 0xffffffff); }

}  // namespace

bool DatabaseMemory::Exists(const std::string& folder) {
  return access(PathIn(folder).c_str(), F_OK) == 0;
}

absl::StatusOr<std::unique_ptr<DatabaseMemory>> DatabaseMemory::Load(const std::string& folder,
                                                                     RandomSource& random) {
  std::unique_ptr<DatabaseMemory> memory(new DatabaseMemory(PathIn(folder)));
  if (Exists(folder)) {
    RETURN_IF_ERROR(memory->Read());
  } else {
    random.Fill(absl::MakeSpan(memory->writer_));
  }
  return memory;
}

DatabaseMemory::~DatabaseMemory() {
  const absl::MutexLock lock(&mutex_);
  if (system_ != 0) Write().IgnoreError();
}

absl::Status DatabaseMemory::Read() {
  const absl::MutexLock lock(&mutex_);
  std::ifstream in(path_);
  std::string line, word, lsn, writer;
  std::getline(in, line);
  in >> word >> system_ >> word >> lsn >> word >> writer >> word;
  for (uint64_t& commits : commits_) in >> commits;
  const std::string bytes = absl::HexStringToBytes(writer.size() == 32 ? writer : "");
  if (!in || line != kFirstLine || bytes.size() != writer_.size()) {
    return absl::DataLossError(absl::StrCat(
        path_,
        " is damaged: it says which database this server wrote to. If you are sure that the "
        "database was not put back since, remove the file and start again"));
  }
  std::copy(bytes.begin(), bytes.end(), writer_.begin());
  lsn_ = ParseLsn(lsn);
  return absl::OkStatus();
}

// Not synced: after a power failure it may be an older one, which is as good a lower bound.
absl::Status DatabaseMemory::Write() {
  std::string text =
      absl::StrCat(kFirstLine, "\nsystem ", system_, "\nlsn ", LsnText(lsn_), "\nwriter ",
                   absl::BytesToHexString(AsText(writer_)), "\ncommits");
  for (const uint64_t commits : commits_) absl::StrAppend(&text, " ", commits);
  const std::string fresh = path_ + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << text << "\n";
  out.close();
  if (out.fail() || rename(fresh.c_str(), path_.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path_, ": ", strerror(errno)));
  }
  written_ = absl::Now();
  return absl::OkStatus();
}

absl::Status DatabaseMemory::PutBack(absl::string_view how) const {
  return absl::FailedPreconditionError(absl::StrCat(
      how,
      ". Replay entries and deletions since then would be undone, so it is not used. Put the "
      "right one back; or, if this is what is left, stop the party's servers, remove ",
      path_, " at each of them and start them again"));
}

uint64_t DatabaseMemory::lsn() const {
  const absl::MutexLock lock(&mutex_);
  return lsn_;
}

absl::Status DatabaseMemory::Check(const DatabaseFacts& facts, uint64_t reached) {
  const absl::MutexLock lock(&mutex_);
  if (system_ == 0) {
    system_ = facts.system;
    return Write();
  }
  if (facts.system != system_) {
    return PutBack(absl::StrCat("[store] postgresql leads to another database cluster (system ",
                                facts.system, ") than before (system ", system_, ")"));
  }
  if (facts.lsn < reached) {
    return PutBack(absl::StrCat("the database was put back: its log ends at ", LsnText(facts.lsn),
                                ", and this server has committed beyond ", LsnText(reached)));
  }
  return absl::OkStatus();
}

std::string DatabaseMemory::WriterId(size_t lane) const {
  std::string id(AsText(writer_));
  AppendUint(id, lane, 1);
  return id;
}

uint64_t DatabaseMemory::Commits(size_t lane) const {
  const absl::MutexLock lock(&mutex_);
  return commits_[lane];
}

absl::Status DatabaseMemory::CheckCommits(size_t lane, uint64_t found, bool unsure) {
  const absl::MutexLock lock(&mutex_);
  if (found < commits_[lane]) {
    return PutBack(absl::StrCat("the database was put back: it has ", found,
                                " commits of this server "
                                "where ",
                                commits_[lane], " were made"));
  }
  if (exact_[lane] && found > commits_[lane] + (unsure ? 1 : 0)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "another mpc-server writes to the database under this one's name: each needs a "
        "data_dir of its own, never a copy: remove ",
        path_,
        " at the one that was "
        "copied"));
  }
  commits_[lane] = found;
  exact_[lane] = true;
  return absl::OkStatus();
}

void DatabaseMemory::Committed(size_t lane, uint64_t lsn) {
  const absl::MutexLock lock(&mutex_);
  ++commits_[lane];
  lsn_ = std::max(lsn_, lsn);
  const absl::Time now = absl::Now();
  if (now - written_ >= limits::kDatabaseRemember || now < written_) Write().IgnoreError();
}

}  // namespace mpckdc
