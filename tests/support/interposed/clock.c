/* Gives the processes that load it, by LD_PRELOAD, a wall clock of their own.

   The file that INTERPOSED_CLOCK names has what it is ahead of the true one, ns, as a
   number of 64 bits, and may change at any time. What waits until a time of the wall
   clock waits for this one: as with a real clock, a step back makes it wait longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define LOOK (SECOND / 10)
/* Times of the monotonic clock are smaller. */
#define IS_WALL(time) ((time)->tv_sec > 1000000000)

static volatile int64_t zero, *ahead = &zero;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("INTERPOSED_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        ahead = mapped;
    close(fd);
}

static int64_t true_ns(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static struct timespec of_ns(int64_t ns) {
    return (struct timespec){ns / SECOND, ns % SECOND};
}

static int64_t wall_ns(void) { return true_ns(CLOCK_REALTIME) + *ahead; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return syscall(SYS_clock_gettime, clock, now);
    *now = of_ns(wall_ns());
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec wall = of_ns(wall_ns());
    now->tv_sec = wall.tv_sec;
    now->tv_usec = wall.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    time_t seconds = wall_ns() / SECOND;
    if (now)
        *now = seconds;
    return seconds;
}

int timespec_get(struct timespec *now, int base) {
    *now = of_ns(wall_ns());
    return base;
}

typedef int (*wait_for_condition)(pthread_cond_t *, pthread_mutex_t *,
                                  const struct timespec *);

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until) {
    static wait_for_condition real;
    if (!real)
        real = (wait_for_condition)dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
                                          "GLIBC_2.3.2");
    if (!IS_WALL(until))
        return real(condition, mutex, until);
    int64_t end = until->tv_sec * SECOND + until->tv_nsec, left;
    while ((left = end - wall_ns()) > 0) {
        struct timespec soon =
            of_ns(true_ns(CLOCK_REALTIME) + (left < LOOK ? left : LOOK));
        int result = real(condition, mutex, &soon);
        if (result != ETIMEDOUT)
            return result;
    }
    return ETIMEDOUT;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real)
        real = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT,
                                                                "sem_timedwait");
    int64_t end = until->tv_sec * SECOND + until->tv_nsec, left;
    while ((left = end - wall_ns()) > 0) {
        struct timespec soon =
            of_ns(true_ns(CLOCK_REALTIME) + (left < LOOK ? left : LOOK));
        if (!real(semaphore, &soon))
            return 0;
        if (errno != ETIMEDOUT)
            return -1;
    }
    errno = ETIMEDOUT;
    return -1;
}
