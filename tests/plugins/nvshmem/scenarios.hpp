// What is checked on every interface and on every kind of NICs: parts of the body of a job, which
// all PEs call together.
//
// Threads: the main thread of a PE.
#pragma once

#include <cstdint>

#include "tests/plugins/nvshmem/fake_host.hpp"

namespace weft::plugins::nvshmem {

[[nodiscard]] std::byte pattern(int pe, std::uint64_t round, std::size_t at);
void fill(std::byte* memory, std::size_t bytes, int pe, std::uint64_t round);
[[nodiscard]] std::size_t wrong_bytes(const std::byte* memory,
                                      std::size_t bytes,
                                      int pe,
                                      std::uint64_t round);

// Four chunks of 1 MiB at least. Each PE with each, itself included, across the ends of chunks.
void check_puts_and_gets(FakeHost& host, int queue, Blocking blocking);
void check_values(FakeHost& host, int queue);
void check_amos(FakeHost& host);
// As many chunks as hold (1 + pe_count) times `bytes_max` and 64 KiB.
void check_put_signals(FakeHost& host, std::size_t bytes_max);

// Runs `work` on the queue's thread.
void on_queue(FakeHost& host, int queue, const std::function<void(Operations&)>& work);

}  // namespace weft::plugins::nvshmem
