/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into an mpc-server it makes the server's time of day that of a wrong clock, by
 * MPCKDC_CLOCK_AHEAD seconds (negative: behind). MIT's tests have krb5kdc do the same to itself (-T).
 *
 *   read      clock_gettime, gettimeofday, time            the kernel's, and the difference
 *   waited    futex and pthread_cond_* until a time of day  that time without the difference, for it
 *                                                          was computed with it
 *
 * (libfaketime does this for all programs, and does not start with jemalloc, which asks for the time
 * while it is being loaded. Hence no memory is allocated here.)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
/* Since the last start of any machine, in seconds, is less; times of day are more. */
#define LEAST_TIME_OF_DAY 1000000000

static time_t ahead(void)
{
    const char *text = getenv("MPCKDC_CLOCK_AHEAD");

    return text == NULL ? 0 : (time_t)strtoll(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    static __typeof__(&clock_gettime) next;
    int ret;

    if (next == NULL)
        next = NEXT(clock_gettime);
    ret = next(id, now);
    if (ret == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += ahead();
    return ret;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec exact;

    clock_gettime(CLOCK_REALTIME, &exact);
    if (now != NULL)
        *now = exact.tv_sec;
    return exact.tv_sec;
}

/* The kernel's time of an end of waiting. */
static const struct timespec *kernels(const struct timespec *until, struct timespec *changed)
{
    if (until == NULL || until->tv_sec < LEAST_TIME_OF_DAY)
        return until;
    *changed = *until;
    changed->tv_sec -= ahead();
    return changed;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec changed;

    return NEXT(pthread_cond_timedwait)(cond, mutex, kernels(until, &changed));
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t id,
                           const struct timespec *until)
{
    struct timespec changed;

    return NEXT(pthread_cond_clockwait)(cond, mutex, id, kernels(until, &changed));
}

/* Abseil's locks wait by this. */
long syscall(long number, ...)
{
    static __typeof__(&syscall) next;
    struct timespec changed;
    long argument[6];
    va_list list;
    int i;

    if (next == NULL)
        next = NEXT(syscall);
    va_start(list, number);
    for (i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && (argument[1] & FUTEX_CLOCK_REALTIME))
        argument[3] = (long)kernels((const struct timespec *)argument[3], &changed);
    return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
