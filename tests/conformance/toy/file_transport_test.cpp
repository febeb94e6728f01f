// What adding a transport takes: the conformance suite in one line, and a job whose PEs reach each
// other by it alone.
#include "tests/conformance/toy/file_transport.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <numeric>

#include "src/runtime/transport_kinds.hpp"
#include "tests/conformance/transport_suite.hpp"
#include "tests/support/thread_job.hpp"

namespace weft::test::toy {
namespace {

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-toy-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class FilePes final : public TransportPes {
 public:
  FilePes(std::uint32_t pe_count, std::size_t heap_bytes)
      : heaps_(pe_count, std::vector<std::byte>(heap_bytes)) {
    std::vector<bootstrap::Blob> connection_data;
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      transports_.push_back(std::make_unique<FileTransport>(
          folder_.path(), Pe(pe), std::vector<std::span<std::byte>>{heaps_[pe]}));
      connection_data.push_back(transports_.back()->describe());
    }
    for (const auto& each : transports_) {
      each->connect(connection_data, std::vector<bool>(pe_count, true));
    }
  }

  [[nodiscard]] transport::Transport& transport(Pe pe) override { return *transports_[pe.value]; }

  [[nodiscard]] std::byte* heap(Pe pe) override { return heaps_[pe.value].data(); }

 private:
  Folder folder_;
  std::vector<std::vector<std::byte>> heaps_;
  std::vector<std::unique_ptr<FileTransport>> transports_;
};

INSTANTIATE_TEST_SUITE_P(Toy,
                         TransportSuite,
                         ::testing::Values(TransportFactory{
                             .name = "files",
                             .make =
                                 [](std::uint32_t pe_count, std::size_t heap_bytes) {
                                   return std::make_unique<FilePes>(pe_count, heap_bytes);
                                 }}),
                         factory_name);

// ---- A job.

Folder* job_folder = nullptr;

std::unique_ptr<transport::Transport> make(const runtime::TransportSite& site) {
  return std::make_unique<FileTransport>(job_folder->path(), site.bootstrap.pe(), site.regions());
}

std::vector<bool> all_but_me(const runtime::TransportSite& site) {
  std::vector<bool> reached(site.bootstrap.pe_count(), true);
  reached[site.bootstrap.pe().value] = false;
  return reached;
}

constexpr std::array kToyKinds{
    runtime::TransportKind{.name = "files",
                           .is_needed = [](const runtime::TransportSite&) { return true; },
                           .reaches = all_but_me,
                           .make = make}};

TEST(ToyTransport, CarriesAJobWithItsHeapWindowsAtomicsAndCollectives) {
  Folder folder;
  job_folder = &folder;
  Config config = testing::test_config();
  config.node_local = "cma";  // nothing of the others is mapped
  testing::run_pes(
      3,
      [](runtime::Runtime& runtime) {
        auto* words = static_cast<std::uint64_t*>(runtime.heap().allocate(4096, 64, true));
        const std::uint32_t me = runtime.pe().value;
        const Pe next((me + 1) % 3);
        std::vector<std::uint64_t> data(100, me + 1);
        ASSERT_EQ(runtime.rma().put_signal(
                      runtime.default_context(), runtime.rma().place_of(words + 1, next),
                      std::as_bytes(std::span(data)),
                      {.word = runtime.rma().place_of(words, next), .value = 7}, next,
                      rma::Blocking::Yes),
                  Status::Ok);
        ASSERT_EQ(runtime.rma().waiter().wait([&] { return rma::load_word(words) == 7; },
                                              [] { return "waiting for the signal"; }),
                  Status::Ok);
        EXPECT_EQ(words[1], (me + 2) % 3 + 1);
        EXPECT_EQ(words[100], (me + 2) % 3 + 1);
        std::vector<std::uint64_t> window(64);
        runtime.register_window(window.data(), 512);
        ASSERT_EQ(runtime.rma().atomic(
                      runtime.default_context(), runtime.rma().place_of(window.data(), Pe(0)),
                      {.code = rma::AtomicCode::Add, .operand = me + 1}, Pe(0), nullptr),
                  Status::Ok);
        ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
        EXPECT_EQ(window[0], me == 0 ? 6U : 0U);
        runtime.unregister_window(window.data());
      },
      config, kToyKinds);
}

}  // namespace
}  // namespace weft::test::toy
