// SPDX-License-Identifier: Apache-2.0
//
// Preloaded by the parts plugin and realm: what a sanitizer is about to report goes to a file of its own in
// $SANITIZE_REPORTS, so that no test loses it that throws away or expects what a program says. The
// sanitizer's option log_path does not do it: with two of GCC's in one process it reaches one of them.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void to_file(void) {
  const char* const folder = getenv("SANITIZE_REPORTS");
  char name[4096];
  if (folder == NULL) return;
  snprintf(name, sizeof(name), "%s/%d", folder, (int)getpid());
  const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  dup2(file, STDERR_FILENO);
  close(file);
}

// Called by the libraries before they print; their own do nothing.
void __asan_on_error(void) { to_file(); }
void __ubsan_on_report(void) { to_file(); }
