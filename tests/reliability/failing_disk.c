/* A disk that fails: while the file $FAILING_DISK exists, every n-th write or sync of goodbot.db* is
 * an EIO, where n is what the file says. What a failed sync had to bring to the disk is lost, as it
 * is in a kernel that drops the pages: it is overwritten with zeros. Preloaded by the tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANGES 4096
static struct { int fd; off64_t at; size_t size; } unsynced[RANGES];
static int ranges, operations;

static int watched(int fd) {
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, name, sizeof name - 1);
  if (n <= 0) return 0;
  name[n] = 0;
  return strstr(name, "goodbot.db") && !strstr(name, "-shm");
}

static int fails(void) {
  const char *path = getenv("FAILING_DISK");
  FILE *file = path ? fopen(path, "r") : NULL;
  int every = 0;
  if (!file) return 0;
  if (fscanf(file, "%d", &every) != 1) every = 0;
  fclose(file);
  return every > 0 && ++operations % every == 0;
}

typedef ssize_t (*writer)(int, const void *, size_t, off64_t);
typedef int (*syncer)(int);

static ssize_t write_at(const char *name, int fd, const void *from, size_t size, off64_t at) {
  writer real = (writer)dlsym(RTLD_NEXT, name);
  if (!watched(fd)) return real(fd, from, size, at);
  if (fails()) { errno = EIO; return -1; }
  if (ranges < RANGES) {
    unsynced[ranges].fd = fd;
    unsynced[ranges].at = at;
    unsynced[ranges++].size = size;
  }
  return real(fd, from, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
  return write_at("pwrite64", fd, from, size, at);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
  return write_at("pwrite", fd, from, size, at);
}

static int sync_now(const char *name, int fd) {
  int lost = watched(fd) && fails(), kept = 0;
  writer real = (writer)dlsym(RTLD_NEXT, "pwrite64");
  for (int i = 0; i < ranges; i++) {
    if (unsynced[i].fd != fd) { unsynced[kept++] = unsynced[i]; continue; }
    for (size_t done = 0; lost && done < unsynced[i].size; done++)
      real(fd, "", 1, unsynced[i].at + (off64_t)done);
  }
  ranges = kept;
  if (lost) { errno = EIO; return -1; }
  return ((syncer)dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return sync_now("fsync", fd); }
int fdatasync(int fd) { return sync_now("fdatasync", fd); }
