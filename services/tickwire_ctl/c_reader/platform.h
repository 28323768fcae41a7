/* ---- Platform: 64-bit little-endian Linux, gcc or clang, C11 or C++17 and later. -------------------------------- */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#if defined(__GLIBC__) && !defined(__USE_MISC)
#error "tickwire.h: include it before any other header, or compile with -std=gnu11 or -D_GNU_SOURCE"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || !defined(__LP64__)
#error "tickwire.h: needs a 64-bit little-endian processor"
#endif
#ifndef F_OFD_SETLK /* since Linux 3.15, the same on all processors */
#define F_OFD_SETLK 37
#endif

#ifdef __cplusplus
#define TW_ASSERT(condition, message) static_assert(condition, message)
#else
#define TW_ASSERT(condition, message) _Static_assert(condition, message)
#endif

/* What the functions below return. */
enum tickwire_result {
    TICKWIRE_READY = 1,      /* wait: poll has something to report */
    TICKWIRE_TIMEOUT = 0,    /* wait: nothing yet */
    TICKWIRE_LAPPED = -1,    /* poll: records were overwritten before they were read */
    TICKWIRE_STOPPED = -2,   /* wait: the run is over */
    TICKWIRE_REPLACED = -3,  /* wait: the name means another ring now */
    TICKWIRE_NOT_FOUND = -4, /* open, reattach: no such ring (yet) */
    TICKWIRE_ERROR = -5      /* refused; the text is in `reader->error` */
};

#define TICKWIRE_SPIN_FOREVER INT64_MAX
