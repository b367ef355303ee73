/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: LD_PRELOADed under a program, it makes the wall clock leap for it alone, as when
 * somebody sets a machine's clock. MPCKDC_CLOCK_FILE names a file of eight bytes: the seconds by
 * which CLOCK_REALTIME differs, which may change at any time. CLOCK_MONOTONIC goes on as it does.
 * Waits until a wall-clock time look at it again every 20 ms; the kernel does when it is set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long kSlice = 20 * 1000 * 1000;
static volatile const int64_t* leap;
static const int64_t none = 0;
static int (*real_gettime)(clockid_t, struct timespec*);
static long (*real_syscall)(long, ...);
static int (*real_timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
static int (*real_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

__attribute__((constructor)) static void begin(void) {
  real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  real_syscall = dlsym(RTLD_NEXT, "syscall");
  real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  real_clockwait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  leap = &none;
  const char* file = getenv("MPCKDC_CLOCK_FILE");
  const int fd = file == NULL ? -1 : open(file, O_RDONLY);
  if (fd < 0) return;
  void* at = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) leap = at;
  close(fd);
}

static int is_wall(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  if (real_gettime == NULL) begin();
  const int result = real_gettime(clock, out);
  if (result == 0 && is_wall(clock)) out->tv_sec += *leap;
  return result;
}

int gettimeofday(struct timeval* out, void* zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

/* How long from now, at most a slice; 0: it is past. */
static struct timespec slice_until(const struct timespec* end) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const __int128 left =
      ((__int128)end->tv_sec - now.tv_sec) * 1000000000 + end->tv_nsec - now.tv_nsec;
  const struct timespec slice = {0, left <= 0 ? 0 : left < kSlice ? (long)left : kSlice};
  return slice;
}

static struct timespec monotonic_after(const struct timespec* slice) {
  struct timespec end;
  real_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += slice->tv_nsec;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  return end;
}

static long wait_in_slices(long word, int op, long value, const struct timespec* end, long bits) {
  for (;;) {
    const struct timespec slice = slice_until(end), until = monotonic_after(&slice);
    const long result = real_syscall(SYS_futex, word, (op & ~FUTEX_CLOCK_REALTIME), value, &until,
                                     NULL, bits);
    if (result == 0 || errno != ETIMEDOUT || slice.tv_nsec == 0) return result;
  }
}

long syscall(long number, ...) {
  if (real_syscall == NULL) begin();
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const int op = (int)a[1], command = op & FUTEX_CMD_MASK;
  if (number == SYS_futex && command == FUTEX_WAIT_BITSET && (op & FUTEX_CLOCK_REALTIME) &&
      a[3] != 0) {
    return wait_in_slices(a[0], op, a[2], (const struct timespec*)a[3], a[5]);
  }
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const struct timespec* end) {
  return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, end);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* end) {
  if (real_clockwait == NULL) begin();
  if (clock != CLOCK_REALTIME) return real_clockwait(condition, mutex, clock, end);
  for (;;) {
    const struct timespec slice = slice_until(end), until = monotonic_after(&slice);
    const int result = real_clockwait(condition, mutex, CLOCK_MONOTONIC, &until);
    if (result != ETIMEDOUT || slice.tv_nsec == 0) return result;
  }
}
