/* Preloaded before PostgreSQL and SQLite: every fsync and fdatasync takes BENCH_SYNC_US microseconds more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*sync_call)(int);

static int slowly(const char *name, int fd)
{
    const char *wanted = getenv("BENCH_SYNC_US");
    int result = ((sync_call)dlsym(RTLD_NEXT, name))(fd);
    if (wanted)
        usleep((useconds_t)atoi(wanted));
    return result;
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
