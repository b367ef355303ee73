/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: LD_PRELOADed under a program that uses liblmdb, it counts the calls that change or
 * sync one file and does something to the k-th. By environment:
 *
 *   MPCKDC_SHIM_FILE  the file's absolute path; FILE.new is it too, while it is created
 *   MPCKDC_SHIM_AT    k, from 1; 0: nothing happens
 *   MPCKDC_SHIM_DO    kill    the process dies before the call
 *                     tear    some sectors of the write are written, then the process dies
 *                     lose    as tear; and of everything that was written since the last sync some
 *                             sectors are as they were before, and the file may be as short as it
 *                             was: what a power failure leaves
 *                     eio     the call fails with EIO: a sync loses nothing, a write writes nothing
 *                     enospc  this call and all after it that write fail with ENOSPC
 *   MPCKDC_SHIM_SEED  decides which sectors
 *   MPCKDC_SHIM_LIES  control: syncs are not remembered, as on a disk that lies about them
 *
 * A sector of 512 bytes is written whole or not at all. A write through a descriptor opened with
 * O_DSYNC (LMDB's, for its meta pages) is on the disk when it returns. LMDB without MDB_WRITEMAP,
 * as the share store uses it, changes its file by these calls only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SECTOR 512

/* A sector as it is on the disk, while the file's cached one is newer. */
struct sector {
    off_t at;
    size_t size; /* of it inside the file, then */
    uint8_t bytes[SECTOR];
};
static struct sector *unsynced;
static size_t unsynced_count;
static off_t synced_size = -1;

static long calls;
static uint64_t random_state;

long mpckdc_shim_calls(void);
long mpckdc_shim_calls(void) { return calls; }

/* splitmix64 */
static uint64_t next_random(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static int is_do(const char *what)
{
    const char *set = getenv("MPCKDC_SHIM_DO");
    return set != NULL && strcmp(set, what) == 0;
}

static int is_the_file(int fd)
{
    const char *file = getenv("MPCKDC_SHIM_FILE");
    char link[64], path[4096];
    ssize_t n;
    if (file == NULL)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n < 0)
        return 0;
    path[n] = '\0';
    n = (ssize_t)strlen(file);
    return strncmp(path, file, (size_t)n) == 0 &&
           (path[n] == '\0' || strcmp(path + n, ".new") == 0);
}

static off_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_size : 0;
}

static ssize_t real_pwrite(int fd, const void *data, size_t size, off_t at)
{
    return syscall(SYS_pwrite64, fd, data, size, at);
}

/* LMDB's data descriptor can be read; the one for meta pages may not. */
static ssize_t read_back(int written, void *data, size_t size, off_t at)
{
    char link[64];
    int fd;
    ssize_t n;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", written);
    fd = open(link, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : pread(fd, data, size, at);
    if (fd >= 0)
        close(fd);
    return n;
}

static void remember(int fd, off_t at, size_t size)
{
    off_t s;
    if (synced_size < 0)
        synced_size = size_of(fd);
    for (s = at / SECTOR * SECTOR; s < at + (off_t)size; s += SECTOR) {
        size_t i;
        struct sector *grown;
        ssize_t n;
        for (i = 0; i < unsynced_count && unsynced[i].at != s; i++)
            ;
        if (i < unsynced_count)
            continue;
        grown = realloc(unsynced, (unsynced_count + 1) * sizeof(*unsynced));
        if (grown == NULL)
            abort();
        unsynced = grown;
        unsynced[i].at = s;
        memset(unsynced[i].bytes, 0, SECTOR);
        n = read_back(fd, unsynced[i].bytes, SECTOR, s);
        unsynced[i].size = n < 0 ? 0 : (size_t)n;
        unsynced_count++;
    }
}

static void all_synced(void)
{
    if (getenv("MPCKDC_SHIM_LIES") != NULL)
        return;
    unsynced_count = 0;
    synced_size = -1;
}

static void die(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Some of the sectors that were not synced go back to what is on the disk. */
static void lose_unsynced(int fd)
{
    size_t i;
    for (i = 0; i < unsynced_count; i++) {
        const struct sector *s = &unsynced[i];
        if (next_random() % 2 == 0)
            continue;
        if (real_pwrite(fd, s->bytes, SECTOR, s->at) < 0)
            abort();
    }
    /* Putting back the last sector may have made the file longer than it ever was. */
    if (synced_size >= 0 && next_random() % 2 == 0 && syscall(SYS_ftruncate, fd, synced_size) != 0)
        abort();
}

/* Writes some sectors of a write that is cut short by the end. */
static void tear(int fd, const uint8_t *data, size_t size, off_t at)
{
    size_t done = 0;
    while (done < size) {
        size_t piece = SECTOR - (size_t)((at + (off_t)done) % SECTOR);
        if (piece > size - done)
            piece = size - done;
        if (next_random() % 2 == 0 && real_pwrite(fd, data + done, piece, at + (off_t)done) < 0)
            abort();
        done += piece;
    }
}

/* Counts a call on the file. Returns 0 when it may go on, else the errno that it fails with. */
static int strike(int fd, int writes, const uint8_t *data, size_t size, off_t at)
{
    const char *when = getenv("MPCKDC_SHIM_AT"), *seed = getenv("MPCKDC_SHIM_SEED");
    const long k = when == NULL ? 0 : atol(when);
    calls++;
    if (k == 0 || calls < k)
        return 0;
    if (is_do("enospc"))
        return writes ? ENOSPC : 0;
    if (calls > k)
        return 0;
    if (is_do("eio"))
        return EIO;
    random_state = seed == NULL ? 0 : strtoull(seed, NULL, 10);
    if (is_do("kill"))
        die();
    if (data != NULL) {
        remember(fd, at, size);
        tear(fd, data, size, at);
    }
    if (is_do("lose"))
        lose_unsynced(fd);
    die();
    return EIO;
}

static int durable_at_once(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DSYNC) != 0;
}

static ssize_t shim_pwrite(int fd, const void *data, size_t size, off_t at)
{
    const int error = strike(fd, 1, data, size, at);
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (!durable_at_once(fd))
        remember(fd, at, size);
    return real_pwrite(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return is_the_file(fd) ? shim_pwrite(fd, data, size, at) : real_pwrite(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return pwrite(fd, data, size, at);
}

/* The file's own position moves as with the real calls. */
ssize_t write(int fd, const void *data, size_t size)
{
    off_t at;
    ssize_t n;
    if (!is_the_file(fd))
        return syscall(SYS_write, fd, data, size);
    at = lseek(fd, 0, SEEK_CUR);
    n = shim_pwrite(fd, data, size, at);
    if (n > 0)
        lseek(fd, at + n, SEEK_SET);
    return n;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    uint8_t *joined;
    size_t size = 0, done = 0;
    ssize_t n;
    int i;
    if (!is_the_file(fd))
        return syscall(SYS_writev, fd, parts, count);
    for (i = 0; i < count; i++)
        size += parts[i].iov_len;
    joined = malloc(size);
    if (joined == NULL)
        abort();
    for (i = 0; i < count; i++) {
        memcpy(joined + done, parts[i].iov_base, parts[i].iov_len);
        done += parts[i].iov_len;
    }
    n = write(fd, joined, size);
    free(joined);
    return n;
}

int ftruncate(int fd, off_t size)
{
    int error;
    if (!is_the_file(fd))
        return (int)syscall(SYS_ftruncate, fd, size);
    error = strike(fd, 1, NULL, 0, 0);
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (synced_size < 0)
        synced_size = size_of(fd);
    return (int)syscall(SYS_ftruncate, fd, size);
}

static int shim_sync(int fd, long number)
{
    int error, result;
    if (!is_the_file(fd))
        return (int)syscall(number, fd);
    error = strike(fd, 0, NULL, 0, 0);
    if (error != 0) {
        errno = error;
        return -1;
    }
    result = (int)syscall(number, fd);
    if (result == 0)
        all_synced();
    return result;
}

int fdatasync(int fd) { return shim_sync(fd, SYS_fdatasync); }
int fsync(int fd) { return shim_sync(fd, SYS_fsync); }

/* Whether the file is mapped there. */
static int is_map_of_the_file(const void *map)
{
    const char *file = getenv("MPCKDC_SHIM_FILE"), *at;
    char line[4096 + 128];
    unsigned long from, to;
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (file != NULL && maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL)
        found = sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)map >= from &&
                (uintptr_t)map < to && (at = strstr(line, file)) != NULL &&
                at[strlen(file)] == '\n';
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* LMDB's map is read-only (no MDB_WRITEMAP), so the file is never synced so. Others are: krb5's update log. */
int msync(void *map, size_t size, int flags)
{
    if (is_map_of_the_file(map)) {
        fprintf(stderr, "fault_shim: msync() was called: LMDB writes through its map\n");
        abort();
    }
    return (int)syscall(SYS_msync, map, size, flags);
}
