//===- GlibcFloor.c - Programs of a newer glibc on glibc 2.28 -------------===//
//
// A program binds each function of libc to the newest version that the linker sees. The functions
// below got a new version, or a first one, after 2.28, without behaving otherwise for us: here each
// of them is a hidden function that calls the version of 2.28. So a program that is linked with
// this file runs on every glibc from 2.28 on (manylinux_2_28). cmake/FP4Portable.cmake has the
// other half.
//
//===----------------------------------------------------------------------===//
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>

#define HIDDEN __attribute__((visibility("hidden"), used))
#define OLD_AT(version, name, result, parameters)                                                  \
  extern result old_##name parameters;                                                             \
  __asm__(".symver old_" #name ", " #name "@GLIBC_" version)
#define OLD(name, result, parameters) OLD_AT(FIRST, name, result, parameters)
#define BIND_AT(version, name, result, parameters, arguments)                                      \
  OLD_AT(version, name, result, parameters);                                                       \
  HIDDEN result name parameters { return old_##name arguments; }
#define BIND(name, result, parameters, arguments)                                                  \
  BIND_AT(FIRST, name, result, parameters, arguments)

// The first version of glibc for the host, and what its stat structure says of itself.
#if defined(__x86_64__)
#define FIRST "2.2.5"
#define SETNAME "2.12"
enum { statVersion = 1, nodeVersion = 0 };
#elif defined(__aarch64__)
#define FIRST "2.17"
#define SETNAME FIRST
enum { statVersion = 0, nodeVersion = 0 };
#else
#error "the floor of glibc 2.28 knows x86-64 and aarch64"
#endif

// 2.34 moved libpthread and libdl into libc.
BIND(dlclose, int, (void *a), (a))
BIND(dladdr, int, (const void *a, Dl_info *b), (a, b))
BIND(dlerror, char *, (void), ())
BIND(dlopen, void *, (const char *a, int b), (a, b))
BIND(dlsym, void *, (void *a, const char *b), (a, b))
BIND(pthread_attr_setstacksize, int, (pthread_attr_t * a, size_t b), (a, b))
BIND(pthread_create, int, (pthread_t * a, const pthread_attr_t *b, void *(*c)(void *), void *d),
     (a, b, c, d))
BIND(pthread_detach, int, (pthread_t a), (a))
BIND(pthread_getspecific, void *, (pthread_key_t a), (a))
BIND(pthread_join, int, (pthread_t a, void **b), (a, b))
BIND(pthread_key_create, int, (pthread_key_t * a, void (*b)(void *)), (a, b))
BIND(pthread_key_delete, int, (pthread_key_t a), (a))
BIND(pthread_once, int, (pthread_once_t * a, void (*b)(void)), (a, b))
BIND(pthread_rwlock_rdlock, int, (pthread_rwlock_t * a), (a))
BIND(pthread_rwlock_unlock, int, (pthread_rwlock_t * a), (a))
BIND(pthread_rwlock_wrlock, int, (pthread_rwlock_t * a), (a))
BIND_AT(SETNAME, pthread_setname_np, int, (pthread_t a, const char *b), (a, b))
BIND(pthread_setspecific, int, (pthread_key_t a, const void *b), (a, b))
BIND(pthread_sigmask, int, (int a, const sigset_t *b, sigset_t *c), (a, b, c))
HIDDEN int __pthread_key_create(pthread_key_t *a, void (*b)(void *)) {
  return old_pthread_key_create(a, b);
}

// Functions that no longer set errno through a hook of System V.
BIND(exp, double, (double a), (a))
BIND(exp2, double, (double a), (a))
BIND(log, double, (double a), (a))
BIND(log2, double, (double a), (a))
BIND(hypot, double, (double a, double b), (a, b))
BIND(pow, double, (double a, double b), (a, b))

// Until 2.33 these were inline functions, which named the version of the structure. stat and stat64
// are one structure on hosts of 64 bits.
OLD(__xstat, int, (int, const char *, struct stat *));
OLD(__lxstat, int, (int, const char *, struct stat *));
OLD(__fxstat, int, (int, int, struct stat *));
OLD(__xmknod, int, (int, const char *, mode_t, dev_t *));
HIDDEN int stat(const char *a, struct stat *b) { return old___xstat(statVersion, a, b); }
HIDDEN int lstat(const char *a, struct stat *b) { return old___lxstat(statVersion, a, b); }
HIDDEN int fstat(int a, struct stat *b) { return old___fxstat(statVersion, a, b); }
HIDDEN int stat64(const char *a, struct stat64 *b) { return stat(a, (struct stat *)b); }
HIDDEN int lstat64(const char *a, struct stat64 *b) { return lstat(a, (struct stat *)b); }
HIDDEN int fstat64(int a, struct stat64 *b) { return fstat(a, (struct stat *)b); }
HIDDEN int mknod(const char *a, mode_t b, dev_t c) { return old___xmknod(nodeVersion, a, b, &c); }

/// 2.33; LLVM reports the memory in use, of which the older function knows 31 bits.
OLD(mallinfo, struct mallinfo, (void));
HIDDEN struct mallinfo2 mallinfo2(void) {
  struct mallinfo old = old_mallinfo();
  struct mallinfo2 now = {.arena = (unsigned)old.arena,
                          .hblkhd = (unsigned)old.hblkhd,
                          .uordblks = (unsigned)old.uordblks,
                          .fordblks = (unsigned)old.fordblks};
  return now;
}

/// 2.32; libstdc++ may skip atomic operations while it is true.
HIDDEN char __libc_single_threaded = 0;

/// 2.36; the static libstdc++ has std::random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
  }
  return bits;
}

#ifdef FP4_GLIBC_FLOOR_PROGRAM
// Since 2.34 libc runs the constructors of a program, which before it brought a function for.
typedef void (*Constructor)(int, char **, char **);
extern const Constructor __preinit_array_start[],
    __preinit_array_end[] __attribute__((visibility("hidden")));
extern const Constructor __init_array_start[],
    __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

static void construct(int count, char **arguments, char **environment) {
  for (const Constructor *each = __preinit_array_start; each != __preinit_array_end; ++each)
    (*each)(count, arguments, environment);
  _init();
  for (const Constructor *each = __init_array_start; each != __init_array_end; ++each)
    (*each)(count, arguments, environment);
}

typedef int (*Main)(int, char **, char **);
OLD(__libc_start_main, int,
    (Main, int, char **, Constructor, void (*)(void), void (*)(void), void *));
HIDDEN int __libc_start_main(Main program, int count, char **arguments, Constructor init,
                             void (*fini)(void), void (*loaderFini)(void), void *stackEnd) {
  return old___libc_start_main(program, count, arguments, init ? init : construct, fini, loaderFini,
                               stackEnd);
}
#endif
