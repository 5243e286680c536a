#pragma once
#include <cstdint>

#include "kernels/cuda/tile/common.cuh"

// What Hopper does on its own while the threads go on: kernels that start before the last one ends,
// barriers in shared memory, and the copy engine.
namespace lrnn::kernels::cuda {

// --------------------------------------------------------------------------------- one after one
// Programmatic dependent launch (PDL): a kernel of several in a row starts while the last blocks of
// the one before still run, gets itself ready and then waits for all that those before wrote.
template <class... Parameters, class... Arguments>
void pdl_launch(void (*kernel)(Parameters...), dim3 blocks, int threads, int bytes,
                cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks, config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = size_t(bytes), config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  check_launch("delta_product");
}
// The next kernel may start. By all blocks, as early as they like.
__device__ __forceinline__ void pdl_trigger() {
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}
// Before anything is read that the kernel before wrote, and before anything is written: that one
// may still read. By every thread that does either.
__device__ __forceinline__ void pdl_wait() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }

// ------------------------------------------------------------------------------------- barriers
// Barriers in shared memory (mbarrier): threads arrive, and bytes that the copy engine (TMA) was to
// bring.
__device__ __forceinline__ void barrier_init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
// Arrives, and says how many bytes are to come.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}
// A bulk copy: the copy engine brings one piece of memory, a multiple of 16 bytes.
__device__ __forceinline__ void bring(uint32_t barrier, uint32_t to, const void* from, int bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// --------------------------------------------------------------------------------------- stores
// Results leave through shared memory and the copy engine (TMA): stores of four bytes from every
// lane would fill the queue of the memory unit. A thread's copies are counted in groups, as they
// are issued.
__device__ __forceinline__ void stmatrix(uint32_t to, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void stmatrix_transposed(uint32_t to, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(to),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void send(void* to, uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void send_commit() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}
// All but the last kLeft groups of this thread have been read from shared memory.
template <int kLeft> __device__ __forceinline__ void send_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kLeft) : "memory");
}

}  // namespace lrnn::kernels::cuda
