// The instructions of PTX that Weft writes out, by the names that translate.py makes of them:
// operands in the order of the text.
//
// Loads that others' stores may answer are where a thread lets others go on. The order of memory is
// that of this machine's CPU. Threads of kernels only. Errors: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/emulated_gpu/block.hpp"

namespace weft_emulated::ptx {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// ---- Words

template <int kOrder, typename Value, typename Word>
void load(Value& value, const Word* word) {
  poll();
  value = __atomic_load_n(word, kOrder);
  order::loads(word);
  has_seen(word, value);
}

template <int kOrder, typename Word>
void store(Word* word, Word value) {
  order::stores(word);
  __atomic_store_n(word, value, kOrder);
  has_moved();
}

inline void ld_relaxed_sys_global_u32(u32& value, const u32* word) {
  load<__ATOMIC_RELAXED>(value, word);
}

inline void ld_relaxed_sys_global_u64(u64& value, const u64* word) {
  load<__ATOMIC_RELAXED>(value, word);
}

inline void ld_acquire_sys_global_u32(u32& value, const u32* word) {
  load<__ATOMIC_ACQUIRE>(value, word);
}

inline void ld_acquire_sys_global_u64(u64& value, const u64* word) {
  load<__ATOMIC_ACQUIRE>(value, word);
}

inline void st_relaxed_sys_global_u32(u32* word, u32 value) {
  store<__ATOMIC_RELAXED>(word, value);
}

inline void st_relaxed_sys_global_u64(u64* word, u64 value) {
  store<__ATOMIC_RELAXED>(word, value);
}

inline void st_release_sys_global_u32(u32* word, u32 value) {
  store<__ATOMIC_RELEASE>(word, value);
}

inline void st_release_sys_global_u64(u64* word, u64 value) {
  store<__ATOMIC_RELEASE>(word, value);
}

inline void st_release_gpu_global_u64(u64* word, u64 value) {
  store<__ATOMIC_RELEASE>(word, value);
}

inline void red_relaxed_sys_global_add_u64(u64* word, u64 value) {
  order::stores(word);
  __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
  has_moved();
}

inline void fence_acq_rel_sys() {
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  order::fence();
}

inline void fence_acq_rel_gpu() {
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  order::fence();
}

inline void fence_sc_sys() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  order::fence();
}

// ---- Units of 16 bytes

inline void ld_global_v4_u32(u32& x, u32& y, u32& z, u32& w, const void* from) {
  const auto* words = static_cast<const u32*>(from);
  x = words[0];
  y = words[1];
  z = words[2];
  w = words[3];
}

inline void st_global_v4_u32(void* to, u32 x, u32 y, u32 z, u32 w) {
  auto* words = static_cast<u32*>(to);
  words[0] = x;
  words[1] = y;
  words[2] = z;
  words[3] = w;
  has_moved();
}

inline void ld_relaxed_sys_global_v4_u32(u32& x, u32& y, u32& z, u32& w, const void* from) {
  poll();
  const auto* words = static_cast<const u32*>(from);
  x = __atomic_load_n(words, __ATOMIC_RELAXED);
  y = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
  z = __atomic_load_n(words + 2, __ATOMIC_RELAXED);
  w = __atomic_load_n(words + 3, __ATOMIC_RELAXED);
  has_moved();
}

inline void st_relaxed_sys_global_v2_u64(u64* to, u64 a, u64 b) {
  order::stores(to);
  __atomic_store_n(to, a, __ATOMIC_RELAXED);
  __atomic_store_n(to + 1, b, __ATOMIC_RELAXED);
  has_moved();
}

inline void ld_relaxed_sys_global_v2_u64(u64& a, u64& b, const u64* from) {
  poll();
  a = __atomic_load_n(from, __ATOMIC_RELAXED);
  b = __atomic_load_n(from + 1, __ATOMIC_RELAXED);
  order::loads(from);
  has_seen(from, a ^ b);
}

inline void mov_b128_st_relaxed_sys_global_b128(void* to, u64 low, u64 high) {
  order::stores(to);
  store_unit(to, low, high);
  has_moved();
}

inline void ld_relaxed_sys_global_b128_mov_b128(u64& low, u64& high, const void* from) {
  poll();
  load_unit(low, high, from);
  order::loads(from);
  has_seen(from, low ^ high);
}

// ---- Threads of a block

inline void mov_u32_laneid(u32& lane) {
  lane = here().lane();
}

inline void mov_u64_globaltimer(u64& ns) {
  poll();
  ns = static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count());
}

inline void bar_sync(u32 barrier, u32 threads, Place where = Place::current()) {
  meet_in_block(barrier, threads, true, where);
}

inline void bar_arrive(u32 barrier, u32 threads) {
  arrive_in_block(barrier, threads);
}

inline void bar_sync_15(u32 threads, Place where = Place::current()) {
  bar_sync(15, threads, where);
}

inline void setp_ne_s32_0_barrier_red_and_pred_selp_s32_1_0(
    int& all, u32 barrier, u32 threads, int vote, Place where = Place::current()) {
  all = meet_in_block(barrier, threads, vote != 0, where).all ? 1 : 0;
}

inline void griddepcontrol_wait() {}

// ---- The copy engine, and barriers that count its bytes. Addresses in shared memory are distances
// from dynamic_memory.

inline std::byte* shared_at(u32 address) {
  return dynamic_memory + static_cast<std::int32_t>(address);
}

inline ByteBarrier& byte_barrier(u32 address) {
  return *reinterpret_cast<ByteBarrier*>(shared_at(address));
}

inline void mbarrier_init_shared_cta_b64_1(u32 barrier) {
  byte_barrier(barrier).begin(1);
}

inline void mbarrier_arrive_expect_tx_shared_cta_b64(u32 barrier, u32 bytes) {
  byte_barrier(barrier).arrive(bytes);
}

inline void mbarrier_try_wait_parity_shared_cta_b64_selp_u32_1_0(u32& is_done,
                                                                 u32 barrier,
                                                                 u32 parity) {
  is_done = byte_barrier(barrier).is_past(parity) ? 1 : 0;
}

inline void cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(u32 to,
                                                                           const void* from,
                                                                           u32 bytes,
                                                                           u32 barrier) {
  load_bulk(shared_at(to), static_cast<const std::byte*>(from), bytes,
            reinterpret_cast<u64*>(shared_at(barrier)));
}

inline void cp_async_bulk_global_shared_cta_bulk_group(void* to, u32 from, u32 bytes) {
  store_bulk(static_cast<std::byte*>(to), shared_at(from), bytes);
}

inline void cp_async_bulk_commit_group() {
  commit_stores();
}

inline void cp_async_bulk_wait_group_0() {
  await_stores(true);
}

inline void cp_async_bulk_wait_group_read_0() {
  await_stores(false);
}

inline void fence_proxy_async_global() {}

inline void fence_proxy_async_shared_cta() {}

inline void fence_mbarrier_init_release_cluster() {}

// ---- Numbers, by CUDA's functions for the host

void add_rn_bf16x2(u32& sum, u32 pair);
void cvt_rn_bf16x2_f32(u32& pair, float high, float low);
void cvt_rn_f16x2_e4m3x2(u32& halves, u16 codes);
void cvt_rn_satfinite_e4m3x2_f32(u16& codes, float high, float low);
void cvt_rn_satfinite_e5m2x2_f32(u16& codes, float high, float low);

}  // namespace weft_emulated::ptx
