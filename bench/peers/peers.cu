// Places, options, tables and JSON lines of the peer programs; see peers.cuh.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <thread>
#include <utility>

#include <unistd.h>

#include "peers.cuh"

namespace peers {
namespace {
int number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    fail(std::string(name) + " is not set; start this program by `run`");
  }
  return std::atoi(text);
}

size_t parse_size(const char* text) {
  char* end = nullptr;
  size_t value = std::strtoull(text, &end, 10);
  const std::string suffixes = "kmg";
  size_t power = suffixes.find(static_cast<char>(std::tolower(*end)));
  if (*end != '\0' && power != std::string::npos) {
    value <<= 10 * (power + 1);
  }
  return value;
}

std::vector<std::string> split(const char* text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

std::string today() {
  char text[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::string gpu_name() {
  int device = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

void write_id(const std::string& path, const void* id, size_t size) {
  const std::string unfinished = path + ".new";
  std::FILE* file = std::fopen(unfinished.c_str(), "wb");
  if (file == nullptr || std::fwrite(id, 1, size, file) != size || std::fclose(file) != 0 ||
      std::rename(unfinished.c_str(), path.c_str()) != 0) {
    fail("cannot write " + path);
  }
}

void read_id(const std::string& path, void* id, size_t size) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::seconds(120);
  while (steady_clock::now() < deadline) {
    if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
      const size_t count = std::fread(id, 1, size, file);
      std::fclose(file);
      if (count != size) {
        fail(path + " holds another program's id; name a file that does not exist");
      }
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  fail("rank 0 wrote no id to " + path + " within 120 s");
}
}  // namespace

void fail(const std::string& what) {
  const char* rank = std::getenv("PEER_RANK");
  std::fprintf(stderr, "rank %s: %s\n", rank != nullptr ? rank : "?", what.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

void check(cudaError_t result, const char* action) {
  if (result != cudaSuccess) {
    fail(std::string(action) + ": " + cudaGetErrorName(result) + ", " + cudaGetErrorString(result));
  }
}

void require_environment(const char* name, const char* value, const char* why) {
  const char* found = std::getenv(name);
  if (found == nullptr || std::strcmp(found, value) != 0) {
    fail(std::string(name) + " must be " + value + ": " + why);
  }
}

Place Place::from_environment() {
  Place place;
  place.rank = number_from_environment("PEER_RANK");
  place.count = number_from_environment("PEER_COUNT");
  const char* file = std::getenv("PEER_ID_FILE");
  if (file == nullptr || place.rank < 0 || place.rank >= place.count) {
    fail("PEER_ID_FILE is missing, or PEER_RANK is not below PEER_COUNT");
  }
  place.id_file = file;
  return place;
}

void exchange_id(const Place& place, void* id, size_t size) {
  if (place.rank == 0) {
    write_id(place.id_file, id, size);
  } else {
    read_id(place.id_file, id, size);
  }
}

Options Options::parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string flag = arguments[i];
    if (i + 1 >= count) {
      fail(flag + " needs a value, or is unknown; README.md lists the options");
    }
    const char* value = arguments[++i];
    if (flag == "-b") {
      options.size_min = parse_size(value);
    } else if (flag == "-e") {
      options.size_max = parse_size(value);
    } else if (flag == "-f") {
      options.factor = std::max<size_t>(2, parse_size(value));
    } else if (flag == "-n") {
      options.iterations = std::max(1, std::atoi(value));
    } else if (flag == "-w") {
      options.warm_up = std::max(1, std::atoi(value));
    } else if (flag == "-c") {
      options.ctas = std::max(1, std::atoi(value));
    } else if (flag == "-t") {
      options.threads = std::max(1, std::atoi(value));
    } else if (flag == "-s") {
      options.scopes = split(value);
    } else if (flag == "-d") {
      options.types = split(value);
    } else if (flag == "--only") {
      options.only = split(value);
    } else if (flag == "--json") {
      options.json = value;
    } else if (flag == "--memory") {
      options.windows = std::string(value) == "windows";
    } else {
      fail("unknown option " + flag + "; README.md lists them");
    }
  }
  return options;
}

bool Options::wants(const std::string& bench) const {
  return has(only, bench);
}

bool Options::wants_scope(const std::string& scope) const {
  return has(scopes, scope);
}

bool Options::wants_type(const std::string& type) const {
  return has(types, type);
}

std::vector<size_t> sizes_of(const Options& options, Range own, size_t room) {
  const size_t min = options.size_min != 0 ? options.size_min : own.min;
  const size_t max = std::min(room, options.size_max != 0 ? options.size_max : own.max);
  std::vector<size_t> sizes;
  for (size_t size = min; size < max; size *= options.factor) {
    sizes.push_back(size);
  }
  if (min <= max) {
    sizes.push_back(max);
  }
  return sizes;
}

int iterations_of(const Options& options, size_t bytes, size_t budget) {
  const size_t affordable = std::max<size_t>(4, budget / std::max<size_t>(1, bytes));
  return static_cast<int>(std::min<size_t>(affordable, static_cast<size_t>(options.iterations)));
}

Report::Report(const Place& place, const Options& options, std::string peer, std::string version)
    : pes_(place.count),
      prints_(place.rank == 0),
      peer_(std::move(peer)),
      version_(std::move(version)),
      machine_(gpu_name()),
      date_(today()),
      windows_(options.windows) {
  if (prints_ && !options.json.empty()) {
    json_ = std::fopen(options.json.c_str(), "a");
    if (json_ == nullptr) {
      fail("cannot open " + options.json);
    }
  }
  if (prints_) {
    std::printf("# %s %s%s, %d PEs, %s\n", peer_.c_str(), version_.c_str(),
                windows_ ? " with symmetric windows" : "", pes_, machine_.c_str());
  }
}

Report::~Report() {
  if (json_ != nullptr) {
    std::fclose(json_);
  }
}

void Report::add(Layout layout, const Row& row) {
  all_verified_ = all_verified_ && row.verified;
  if (!prints_) {
    return;
  }
  if (!row.verified) {
    std::fprintf(stderr, "%s %s, %zu bytes: the data is wrong\n", row.bench, row.scope, row.bytes);
  }
  if (last_bench_ != row.bench) {
    last_bench_ = row.bench;
    print_heading(layout, row.bench);
  }
  print_row(layout, row);
  if (json_ != nullptr) {
    write_json(layout, row);
  }
}

void Report::print_heading(Layout layout, const char* bench) {
  std::printf("#%s\n", bench);
  switch (layout) {
    case Layout::Collective:
      std::printf("%-11s %-9s %-9s %-9s %-17s %-13s %s\n", "size(B)", "count", "type", "scope",
                  "latency(us)", "algbw(GB/s)", "busbw(GB/s)");
      break;
    case Layout::Bandwidth:
      std::printf("%-11s %-9s %s\n", "size(B)", "scope", "BW (GB/sec)");
      break;
    case Layout::Latency:
      std::printf("%-11s %-9s %s\n", "size(B)", "scope", "latency(us)");
      break;
  }
}

void Report::print_row(Layout layout, const Row& row) const {
  const double gb_per_s = static_cast<double>(row.bytes) / row.latency_us * 1e-3;
  switch (layout) {
    case Layout::Collective:
      std::printf("%-11zu %-9zu %-9s %-9s %-17.6f %-13.3f %.3f\n", row.bytes, row.count, row.type,
                  row.scope, row.latency_us, gb_per_s, gb_per_s * row.bus_factor);
      break;
    case Layout::Bandwidth:
      std::printf("%-11zu %-9s %.6f\n", row.bytes, row.scope, gb_per_s);
      break;
    case Layout::Latency:
      std::printf("%-11zu %-9s %.6f\n", row.bytes, row.scope, row.latency_us);
      break;
  }
  std::fflush(stdout);
}

void Report::write_json(Layout layout, const Row& row) const {
  std::fprintf(json_,
               "{\"bench\": \"%s\", \"peer\": \"%s\", \"version\": \"%s\", \"machine\": \"%s\", "
               "\"date\": \"%s\", \"scope\": \"%s\", \"type\": \"%s\", \"bytes\": %zu, "
               "\"count\": %zu, \"pes\": %d, \"ctas\": %d, \"threads\": %d, \"iterations\": %d, "
               "\"latency_us\": %.6f",
               row.bench, peer_.c_str(), version_.c_str(), machine_.c_str(), date_.c_str(),
               row.scope, row.type, row.bytes, row.count, pes_, row.ctas, row.threads,
               row.iterations, row.latency_us);
  const double gb_per_s = static_cast<double>(row.bytes) / row.latency_us * 1e-3;
  if (layout != Layout::Latency && row.bytes != 0) {
    std::fprintf(json_, ", \"gb_per_s\": %.6f", gb_per_s);
  }
  if (layout == Layout::Collective && row.bytes != 0) {
    std::fprintf(json_, ", \"bus_gb_per_s\": %.6f", gb_per_s * row.bus_factor);
  }
  if (windows_) {
    std::fprintf(json_, ", \"memory\": \"windows\"");
  }
  std::fprintf(json_, ", \"verified\": %s}\n", row.verified ? "true" : "false");
  std::fflush(json_);
}
}  // namespace peers
