#include "training/tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>

namespace lrnn::training {
namespace {

sigjmp_buf escape;
void on_illegal(int) { siglongjmp(escape, 1); }

bool announced() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 24));
}

bool granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool tiles_work() {
  if (!announced() || !granted()) return false;
  // Palette 1, tile 0 of one row of 64 bytes; the instructions as bytes, for any compiler.
  alignas(64) static unsigned char shape[64] = {};
  shape[0] = 1, shape[16] = 64, shape[48] = 1;
  struct sigaction mine {
  }, before{};
  mine.sa_handler = on_illegal;
  ::sigaction(SIGILL, &mine, &before);
  bool ok = false;
  if (sigsetjmp(escape, 1) == 0) {
    asm volatile(".byte 0xc4,0xe2,0x78,0x49,0x00" : : "a"(shape) : "memory");  // ldtilecfg [rax]
    asm volatile(".byte 0xc4,0xe2,0x7b,0x49,0xc0");                            // tilezero tmm0
    asm volatile(".byte 0xc4,0xe2,0x78,0x49,0xc0");                            // tilerelease
    ok = true;
  }
  ::sigaction(SIGILL, &before, nullptr);
  return ok;
}

}  // namespace lrnn::training
#else
namespace lrnn::training {
bool tiles_work() { return false; }
}  // namespace lrnn::training
#endif
