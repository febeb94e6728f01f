// The nodes of an emulated cluster on this machine: each has a name, a /dev/shm and a /sys/class of
// its own, and runs some processes. They end with the runner, however that ends.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace loom {

struct Job {
  std::string name;
  std::string folder;   // of the fabric
  std::string library;  // folder of libloom-fi.so
  std::string persona;
  std::string provider;
  std::string machine_file;  // for hwloc; empty: it reads the real machine
  std::uint32_t node_count = 1;
  std::uint32_t pes_per_node = 1;
  std::vector<std::string> command;

  [[nodiscard]] std::uint32_t pe_count() const { return node_count * pes_per_node; }
};

// What the machine allows.
enum class Separation : std::uint8_t {
  Full,     // names, /dev/shm and /sys/class
  Nothing,  // no namespaces: nodes are only numbers
};

// Tries it in a child; says on stderr what is missing and what to do.
[[nodiscard]] Separation find_separation();

// Without root: enters a user namespace, in which the nodes may have namespaces of their own.
// Before the first node.
void enter_user_namespace();

// Starts a node's supervisor, which starts its processes. Returns its pid. Its exit status is that
// of the first process that failed (128 + signal), which it has named on stderr.
[[nodiscard]] pid_t start_node(const Job& job,
                               std::uint32_t node,
                               Separation separation,
                               std::uint16_t port);

// Ends all that this process has started and, as it is their subreaper, what those have.
void end_descendants();

// As shells report it: of waitpid()'s status, the exit status or 128 + signal.
[[nodiscard]] int exit_status(int wait_status);

// A free TCP port of the loopback, for the processes to meet at.
[[nodiscard]] std::uint16_t free_port();

}  // namespace loom
