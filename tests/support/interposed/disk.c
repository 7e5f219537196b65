/* Stands between a program and the C library, by LD_PRELOAD: makes calls about files
   below one directory fail, and writes down in a log what they have changed.

   A line of the log is the process, an operation, the number of the file, an offset,
   the length of the data after the line, and the path:
   c new file, m new directory, w write, t truncate, s sync, r rename, u removal. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char under[PATH_MAX];
static long fail_at, calls;
static int failure, log_fd = -1, lasting;

/* From the call with this number on, counted from 1; 0 for none. */
void interposed_begin(const char *directory, long at, int number, int lasts,
                      const char *log) {
    pthread_mutex_lock(&lock);
    snprintf(under, sizeof under, "%s", directory);
    fail_at = at;
    failure = number;
    lasting = lasts;
    calls = 0;
    if (log[0])
        log_fd = syscall(SYS_openat, AT_FDCWD, log,
                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pthread_mutex_unlock(&lock);
}

long interposed_end(void) {
    pthread_mutex_lock(&lock);
    under[0] = 0;
    if (log_fd >= 0)
        syscall(SYS_close, log_fd);
    log_fd = -1;
    pthread_mutex_unlock(&lock);
    return calls;
}

__attribute__((constructor)) static void begin_by_environment(void) {
    const char *directory = getenv("INTERPOSED_UNDER");
    if (directory) {
        const char *at = getenv("INTERPOSED_AT"), *log = getenv("INTERPOSED_LOG");
        interposed_begin(directory, at ? atol(at) : 0, EIO, 1, log ? log : "");
    }
}

static int concerns(const char *path) {
    size_t length = strlen(under);
    return length && strncmp(path, under, length) == 0 &&
           (path[length] == '/' || path[length] == 0);
}

static int path_of(int fd, char *path) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return concerns(path);
}

/* Whether the call is to fail; counts it. */
static int fails(void) {
    calls++;
    if (!fail_at || !(calls == fail_at || (lasting && calls > fail_at)))
        return 0;
    errno = failure;
    return 1;
}

static void note(char operation, unsigned long inode, long long offset,
                 const char *path, const void *data, size_t length) {
    char line[PATH_MAX + 80];
    if (log_fd < 0)
        return;
    int kept = errno;
    int size = snprintf(line, sizeof line, "%d %c %lu %lld %zu %s\n", getpid(),
                        operation, inode, offset, length, path);
    struct iovec parts[2] = {{line, size}, {(void *)data, length}};
    (void)!syscall(SYS_writev, log_fd, parts, 2);
    errno = kept;
}

static unsigned long inode_of(int fd) {
    struct stat found;
    return fstat(fd, &found) ? 0 : found.st_ino;
}

#define UNDER_LOCK(result)                                                           \
    pthread_mutex_lock(&lock);                                                       \
    result;                                                                          \
    pthread_mutex_unlock(&lock);

static int opened(const char *path, int flags, mode_t mode) {
    struct stat before;
    int fd, creates = (flags & O_CREAT) && concerns(path) && stat(path, &before);
    if (creates && fails())
        return -1;
    fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && creates)
        note('c', inode_of(fd), 0, path, "", 0);
    else if (fd >= 0 && (flags & O_TRUNC) && concerns(path))
        note('t', inode_of(fd), 0, path, "", 0);
    return fd;
}

#define OPEN(name)                                                                   \
    int name(const char *path, int flags, ...) {                                     \
        va_list rest;                                                                \
        va_start(rest, flags);                                                       \
        mode_t mode = va_arg(rest, int);                                             \
        va_end(rest);                                                                \
        UNDER_LOCK(int fd = opened(path, flags, mode))                               \
        return fd;                                                                   \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                 \
    int name(int directory, const char *path, int flags, ...) {                      \
        va_list rest;                                                                \
        va_start(rest, flags);                                                       \
        mode_t mode = va_arg(rest, int);                                             \
        va_end(rest);                                                                \
        if (directory != AT_FDCWD && path[0] != '/')                                 \
            return syscall(SYS_openat, directory, path, flags, mode);                \
        UNDER_LOCK(int fd = opened(path, flags, mode))                               \
        return fd;                                                                   \
    }
OPENAT(openat)
OPENAT(openat64)

static ssize_t written(int fd, const void *data, size_t length, off_t offset) {
    char path[PATH_MAX];
    int is_ours = path_of(fd, path);
    if (is_ours && fails())
        return -1;
    if (offset >= 0) {
        ssize_t done = syscall(SYS_pwrite64, fd, data, length, offset);
        if (is_ours && done > 0)
            note('w', inode_of(fd), offset, path, data, done);
        return done;
    }
    ssize_t done = syscall(SYS_write, fd, data, length);
    if (is_ours && done > 0)
        note('w', inode_of(fd), lseek(fd, 0, SEEK_CUR) - done, path, data, done);
    return done;
}

ssize_t write(int fd, const void *data, size_t length) {
    UNDER_LOCK(ssize_t done = written(fd, data, length, -1))
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    UNDER_LOCK(ssize_t done = written(fd, data, length, offset))
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    UNDER_LOCK(ssize_t done = written(fd, data, length, offset))
    return done;
}

static int changed(int fd, char operation, long call, off_t size) {
    char path[PATH_MAX];
    int is_ours = path_of(fd, path);
    if (is_ours && fails())
        return -1;
    int result = syscall(call, fd, size);
    if (is_ours && !result)
        note(operation, inode_of(fd), size, path, "", 0);
    return result;
}

int fsync(int fd) {
    UNDER_LOCK(int result = changed(fd, 's', SYS_fsync, 0))
    return result;
}

int fdatasync(int fd) {
    UNDER_LOCK(int result = changed(fd, 's', SYS_fdatasync, 0))
    return result;
}

int ftruncate(int fd, off_t size) {
    UNDER_LOCK(int result = changed(fd, 't', SYS_ftruncate, size))
    return result;
}

int ftruncate64(int fd, off64_t size) {
    UNDER_LOCK(int result = changed(fd, 't', SYS_ftruncate, size))
    return result;
}

static int renamed(const char *from, const char *to) {
    if (concerns(from) && fails())
        return -1;
    int result = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (!result && concerns(from))
        note('r', 0, 0, from, to, strlen(to));
    return result;
}

int rename(const char *from, const char *to) {
    UNDER_LOCK(int result = renamed(from, to))
    return result;
}

int renameat(int before, const char *from, int after, const char *to) {
    if (from[0] != '/' && before != AT_FDCWD)
        return syscall(SYS_renameat, before, from, after, to);
    return rename(from, to);
}

static int removed(const char *path, int flags) {
    int result = syscall(SYS_unlinkat, AT_FDCWD, path, flags);
    if (!result && concerns(path))
        note('u', 0, 0, path, "", 0);
    return result;
}

int unlink(const char *path) {
    UNDER_LOCK(int result = removed(path, 0))
    return result;
}

int rmdir(const char *path) {
    UNDER_LOCK(int result = removed(path, AT_REMOVEDIR))
    return result;
}

int remove(const char *path) {
    struct stat found;
    int is_directory = !lstat(path, &found) && S_ISDIR(found.st_mode);
    UNDER_LOCK(int result = removed(path, is_directory ? AT_REMOVEDIR : 0))
    return result;
}

int mkdir(const char *path, mode_t mode) {
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!concerns(path) || !fails()) {
        result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
        if (!result && concerns(path))
            note('m', 0, 0, path, "", 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
