/*
 * Makes writes and syncs fail, for tests: preloaded into a process, it stands between the program and
 * the C library for files below the folder FAULT_FOLDER, as the one byte in the file FAULT_SWITCH says:
 *
 *   '0'  everything works
 *   'f'  the disk is full: a write fails, nothing of it is stored
 *   't'  the disk becomes full in the middle: half of a write is stored, then it fails
 *   's'  a sync fails; the data may or may not be on disk
 *   'h'  a sync hangs until this is over
 *   'c'  the disk has room for so many bytes as the number behind it says, in decimal
 *   'o'  the file system is read-only: nothing can be opened for writing
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile char *fault_switch;
static const char *fault_folder;

__attribute__((constructor)) static void load(void)
{
    const char *path = getenv("FAULT_SWITCH");
    fault_folder = getenv("FAULT_FOLDER");
    if (path == NULL || fault_folder == NULL)
        return;
    int fd = open(path, O_RDWR);
    if (fd < 0)
        return;
    void *page = mmap(NULL, 32, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED)
        fault_switch = page;
    close(fd);
}

/* The fault that is on for this file, or 0. */
static char fault(int fd)
{
    char link[64], path[4096];
    if (fault_switch == NULL || *fault_switch == '0')
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0)
        return 0;
    path[len] = 0;
    return strncmp(path, fault_folder, strlen(fault_folder)) == 0 ? *fault_switch : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static __thread long long used;

static int add(const char *path, const struct stat *status, int type, struct FTW *where)
{
    if (type == FTW_F)
        used += status->st_size;
    return 0;
}

/* Whether there is no room for a write that reaches up to `end`. */
static int no_room(int fd, long long end)
{
    struct stat status;
    if (fault(fd) != 'c' || fstat(fd, &status) != 0 || end <= status.st_size)
        return 0;
    used = 0;
    nftw(fault_folder, add, 8, FTW_PHYS);
    if (used + end - status.st_size <= atoll((const char *)fault_switch + 1))
        return 0;
    errno = ENOSPC;
    return 1;
}

/* Whether a file cannot be opened so. */
static int refused(const char *path, int flags)
{
    if (fault_switch == NULL || *fault_switch != 'o' || (flags & O_ACCMODE) == O_RDONLY)
        return 0;
    if (strncmp(path, fault_folder, strlen(fault_folder)) != 0)
        return 0;
    errno = EROFS;
    return 1;
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return refused(path, flags) ? -1 : REAL(open64)(path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t len)
{
    char on = fault(fd);
    if (on == 't' && len > 1) {
        REAL(write)(fd, data, len / 2);
        errno = ENOSPC;
        return -1;
    }
    if (on == 'f' || on == 't') {
        errno = ENOSPC;
        return -1;
    }
    if (on == 'c' && no_room(fd, lseek(fd, 0, SEEK_CUR) + (long long)len))
        return -1;
    return REAL(write)(fd, data, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    char on = fault(fd);
    if (on == 'f' || on == 't') {
        errno = ENOSPC;
        return -1;
    }
    return REAL(writev)(fd, parts, count);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset)
{
    char on = fault(fd);
    if (on == 'f' || on == 't') {
        errno = ENOSPC;
        return -1;
    }
    if (on == 'c' && no_room(fd, offset + (long long)len))
        return -1;
    return REAL(pwrite64)(fd, data, len, offset);
}

/* Whether a sync of this file fails now. */
static int sync_fails(int fd)
{
    while (fault(fd) == 'h')
        usleep(1000);
    if (fault(fd) != 's')
        return 0;
    errno = EIO;
    return 1;
}

int fsync(int fd)
{
    return sync_fails(fd) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return sync_fails(fd) ? -1 : REAL(fdatasync)(fd);
}
