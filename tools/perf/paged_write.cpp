// paged_write: clients (--clients PEs of the first node, by default PE 0 alone) ask servers (the
// PEs of other nodes, else all that are no clients) to fill their buffers with random data. A
// server serves one client; each page comes from one server, in an order that is drawn anew for
// each pass.
// After facts of "Harnessing 3200 Gbps Network" (libfabric-efa-demo). Every page comes with a
// signal, so that the client sees what has arrived, not what was sent, and prints it over time.
#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/nic_counters.hpp"
#include "tools/perf/payload.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

// What the client asks of a server: which pages, how often.
struct Request {
  std::uint64_t passes = 0;
  std::uint64_t page_count = 0;  // that many page numbers follow
};

// A client and its servers. Every PE belongs to one, or to none.
struct Group {
  std::uint32_t client = 0;
  std::vector<std::uint32_t> servers;

  [[nodiscard]] bool serves(std::uint32_t pe) const {
    return std::ranges::find(servers, pe) != servers.end();
  }
};

struct PagedWrite {
  PagedWrite(const Run& of, Group mine)
      : run(of),
        group(std::move(mine)),
        page_bytes(of.options.sizes.begin),
        page_count(
            std::max<std::size_t>(of.options.total_bytes / page_bytes, group.servers.size())),
        pages(page_count * page_bytes),
        request((2 + page_count) * sizeof(std::uint64_t)),
        words(2 * sizeof(std::uint64_t)) {
    fill_poison(pages.bytes());
    std::ranges::fill(words.bytes(), std::byte{0});
    Job::barrier();
  }

  [[nodiscard]] std::byte* page(std::uint64_t index) const {
    return pages.data() + index * page_bytes;
  }

  [[nodiscard]] MessageId id_of(std::uint64_t index) const {
    return {.source = group.servers[index % group.servers.size()],
            .dest = group.client,
            .iteration = index};
  }

  // What the words count.
  [[nodiscard]] std::uint64_t* requests_word() const { return words.words(); }

  [[nodiscard]] std::uint64_t* arrived_word() const { return words.words() + 1; }

  const Run& run;
  Group group;
  std::size_t page_bytes;
  std::uint64_t page_count;
  SymmetricBuffer pages;
  SymmetricBuffer request;
  SymmetricBuffer words;
};

void shuffle(std::vector<std::uint64_t>& pages, std::uint64_t seed) {
  for (std::size_t left = pages.size(); left > 1; --left) {
    std::swap(pages[left - 1], pages[mix(seed ^ left) % left]);
  }
}

// ---- The server ---------------------------------------------------------------------------------

void serve_pass(const PagedWrite& work, const std::vector<std::uint64_t>& pages) {
  const weft_signal arrived{.word = work.arrived_word(), .value = 1, .operation = WEFT_SIGNAL_ADD};
  std::uint64_t outstanding = 0;
  for (const std::uint64_t page : pages) {
    require(weft_put_signal_nbi(work.page(page), work.page(page), work.page_bytes, arrived,
                                static_cast<int>(work.group.client)));
    if (++outstanding % work.run.options.window == 0) {
      require(weft_quiet());
    }
  }
  // Passes write the same pages, and the fabric may reorder them.
  require(weft_quiet());
}

void serve(const PagedWrite& work) {
  require(weft_signal_wait_until(work.requests_word(), WEFT_GE, 1, nullptr));
  const std::uint64_t* request = work.request.words();
  const std::uint64_t passes = request[0];
  std::vector<std::uint64_t> pages(request + 2, request + 2 + request[1]);
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    shuffle(pages, work.run.options.seed + (pass << 8U) + work.run.job.me());
    serve_pass(work, pages);
  }
}

// ---- The client ---------------------------------------------------------------------------------

using Requests =
    std::vector<std::vector<std::uint64_t>>;  // of each server; kept until all pages are here

// Does not wait for the servers: on a cold connection that is a part of what is watched.
Requests ask(const PagedWrite& work) {
  const std::vector<std::uint32_t>& servers = work.group.servers;
  Requests requests(servers.size());
  for (std::size_t server = 0; server < servers.size(); ++server) {
    std::vector<std::uint64_t>& request = requests[server];
    request = {work.run.options.iterations, 0};
    for (std::uint64_t page = server; page < work.page_count; page += servers.size()) {
      request.push_back(page);
    }
    request[1] = request.size() - 2;
    const weft_signal asked{.word = work.requests_word(), .value = 1, .operation = WEFT_SIGNAL_ADD};
    require(weft_put_signal_nbi(work.request.data(), request.data(), request.size() * 8, asked,
                                static_cast<int>(servers[server])));
  }
  return requests;
}

void print_interval(const PagedWrite& work, double milliseconds, double bytes, double seconds) {
  const double bandwidth = gigabytes_per_s(bytes, seconds);
  work.run.report.row(
      {fmt::format("{:.0f}", milliseconds), fmt::format("{}", work.page_bytes),
       fmt::format("{:.6f}", bandwidth)},
      {.size = work.page_bytes,
       .value = bandwidth,
       .unit = "GB/s",
       .more = {{"time_ms", milliseconds}, {"warmup", work.run.options.warms_up.value_or(true)}}});
}

double watch(const PagedWrite& work) {
  const auto interval = std::chrono::milliseconds(work.run.options.interval_ms);
  const std::uint64_t wanted = work.page_count * work.run.options.iterations;
  const Clock::time_point start = Clock::now();
  std::uint64_t before = 0;
  double before_s = 0;
  for (Clock::time_point next = start + interval; before < wanted;) {
    while (Clock::now() < next && weft_signal_fetch(work.arrived_word()) < wanted) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      weft_progress();
    }
    const std::uint64_t arrived = weft_signal_fetch(work.arrived_word());
    const double now_s = seconds_since(start);
    print_interval(work, now_s * 1e3, static_cast<double>((arrived - before) * work.page_bytes),
                   now_s - before_s);
    before = arrived;
    before_s = now_s;
    next += interval;
  }
  return seconds_since(start);
}

std::uint64_t count_wrong_bytes(const PagedWrite& work) {
  std::uint64_t wrong = 0;
  for (std::uint64_t page = 0; page < work.page_count; ++page) {
    const PayloadCheck check = check_payload({work.page(page), work.page_bytes}, work.id_of(page));
    if (!check.is_right() && wrong == 0) {
      fmt::print(stderr, "weft-perf: page {}: {} bytes are wrong, the first at offset {}\n", page,
                 check.wrong_bytes, check.first_wrong_offset);
    }
    wrong += check.wrong_bytes;
  }
  return wrong;
}

// All clients' bytes, in the time of the slowest.
void print_total(const PagedWrite& work, const std::vector<double>& seconds_of_pes) {
  const std::uint64_t pages =
      work.page_count * work.run.options.iterations * work.run.options.clients;
  const auto bytes = static_cast<double>(pages * work.page_bytes);
  const double seconds = seconds_of_pes.empty() ? 0 : std::ranges::max(seconds_of_pes);
  const double bandwidth = gigabytes_per_s(bytes, seconds);
  work.run.report.header("paged_write_total", bandwidth_columns());
  work.run.report.row(
      {fmt::format("{}", work.page_bytes), "None", fmt::format("{:.6f}", bandwidth)},
      {.size = work.page_bytes,
       .value = bandwidth,
       .unit = "GB/s",
       .more = {{"seconds", seconds},
                {"pages", pages},
                {"bytes", bytes},
                {"clients", work.run.options.clients},
                {"warmup", work.run.options.warms_up.value_or(true)},
                {"verified", true}}});
}

// The group of `me`; without servers if it belongs to none. Server i serves client i modulo their
// number.
Group group_of(const Job& job, std::uint64_t client_count) {
  const std::uint32_t me = job.me();
  const bool is_one_node = job.node_count() == 1;
  std::vector<std::uint32_t> clients;
  std::vector<std::uint32_t> servers;
  for (std::uint32_t pe = 0; pe < job.pe_count(); ++pe) {
    if (job.node_of(pe) == job.node_of(0) && clients.size() < client_count) {
      clients.push_back(pe);
    } else if (is_one_node || job.node_of(pe) != job.node_of(0)) {
      servers.push_back(pe);
    }
  }
  if (clients.size() < client_count || servers.size() < client_count) {
    throw JobError(
        fmt::format(
            "paged_write with {0} clients needs {0} PEs on the first node and {0} others to serve "
            "them; there are {1} and {2}",
            client_count, clients.size(), servers.size()),
        kStatusUsage);
  }
  std::vector<Group> groups(clients.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].client = clients[i];
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    groups[i % groups.size()].servers.push_back(servers[i]);
  }
  const auto mine = std::ranges::find_if(
      groups, [&](const Group& group) { return group.client == me || group.serves(me); });
  return mine == groups.end() ? groups.front() : *mine;
}

// Asks or serves, as this PE's part is; the seconds that this took.
double take_part(const PagedWrite& work) {
  const Clock::time_point start = Clock::now();
  const std::uint32_t me = work.run.job.me();
  if (me == work.group.client) {
    const Requests requests = ask(work);
    const double seconds = watch(work);
    require(weft_quiet());
    return seconds;
  }
  if (!work.group.serves(me)) {
    return 0;
  }
  serve(work);
  return seconds_since(start);
}

}  // namespace

void run_paged_write(const Run& run) {
  const std::uint32_t me = run.job.me();
  const PagedWrite work(run, group_of(run.job, run.options.clients));
  for (std::uint64_t page = 0; work.group.serves(me) && page < work.page_count; ++page) {
    if (work.id_of(page).source == me) {
      fill_payload({work.page(page), work.page_bytes}, work.id_of(page));
    }
  }
  run.report.header("paged_write", {{"time(ms)", 12}, {"page(B)", 10}, {"BW (GB/sec)"}});
  if (run.counters != nullptr) {
    run.counters->begin_measured(StepEnd::Barrier);
  }
  Job::barrier();
  const double seconds = take_part(work);
  Job::barrier();
  if (run.counters != nullptr) {
    run.counters->end_measured(seconds);
  }
  const bool is_client = me == work.group.client;
  require_right(run.job, is_client ? count_wrong_bytes(work) : 0);
  print_total(work, run.job.gather(is_client ? seconds : 0));
}

}  // namespace weft::perf
