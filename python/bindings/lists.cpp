// putv and putv_signal: many pairs of dest and source, to one PE.
#include <weft/device.h>
#include <weft/weft.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context.hpp"
#include "memory.hpp"
#include "rma.hpp"
#include "session.hpp"
#include "signals.hpp"
#include "stream.hpp"

namespace nb = nanobind;

namespace weft::python {
namespace {

// Memory of all sides of a list, held as long as the list is used.
class List {
 public:
  List(nb::handle pairs, const char* name) : name_(name) {
    for (const nb::handle pair : pairs) {
      add(pair);
    }
  }

  [[nodiscard]] const weft_segment* segments() const { return segments_.data(); }

  [[nodiscard]] std::size_t size() const { return segments_.size(); }

  // Of all pairs; empty if there are none.
  [[nodiscard]] std::optional<int> device() const { return device_; }

  [[nodiscard]] void* first() const { return segments_.empty() ? nullptr : segments_.front().dest; }

 private:
  void add(nb::handle pair) {
    const std::string what = std::string(name_) + ": pair " + std::to_string(segments_.size());
    if (!nb::isinstance<nb::sequence>(pair) || nb::len(pair) != 2) {
      throw Failure(Kind::InvalidArgument, what + " is not (dest, source)");
    }
    const Memory& to = hold(nb::object(pair[0]), (what + ": dest").c_str());
    const Memory& from = hold(nb::object(pair[1]), (what + ": source").c_str());
    require_match(to, from, what.c_str());
    if (device_ && *device_ != to.device()) {
      throw Failure(Kind::WrongDevice,
                    what + " is not where the pairs before it are; make two lists");
    }
    device_ = to.device();
    segments_.push_back({to.address(), from.address(), from.bytes()});
  }

  const Memory& hold(const nb::object& object, const char* what) {
    held_.push_back(std::make_unique<Memory>(object, Memory::Use::Read, what));
    return *held_.back();
  }

  const char* name_;
  std::vector<std::unique_ptr<Memory>> held_;
  std::vector<weft_segment> segments_;
  std::optional<int> device_;
};

struct Call {
  const char* name;
  bool is_nbi;
  int pe;
  int device;
  const weft_signal* signal = nullptr;
};

int put_from_host(const List& list, const Call& call, weft_ctx_t context) {
  if (call.signal == nullptr) {
    return call.is_nbi ? weft_ctx_putv_nbi(context, list.segments(), list.size(), call.pe)
                       : weft_ctx_putv(context, list.segments(), list.size(), call.pe);
  }
  return (call.is_nbi ? weft_ctx_putv_signal_nbi : weft_ctx_putv_signal)(
      context, list.segments(), list.size(), *call.signal, call.pe);
}

int put_on_stream(const List& list, const Call& call, weft_stream_t stream) {
  return call.signal == nullptr ? weft_putv_on_stream(list.segments(), list.size(), call.pe, stream)
                                : weft_putv_signal_on_stream(list.segments(), list.size(),
                                                             *call.signal, call.pe, stream);
}

// `where` is (context, stream).
void put_list(const List& list, const Call& call, const nb::tuple& where) {
  int status = WEFT_OK;
  if (call.device == kHost) {
    refuse_stream(where[1], call.name);
    const weft_ctx_t context = handle_of(nb::cast<const Context*>(where[0]), call.name);
    const Waiting waiting(call.name);
    status = put_from_host(list, call, context);
  } else {
    const weft_stream_t queue = stream_of(where[1], call.device, call.name);
    const Waiting waiting(call.name);
    status = put_on_stream(list, call, queue);
  }
  check_status(status, call.name, list.first());
}

template <bool kIsNbi>
void putv(nb::handle pairs, int pe, const nb::tuple& where) {
  constexpr const char* kName = kIsNbi ? "weft.putv_nbi" : "weft.putv";
  require_ready(kName);
  const List list(pairs, kName);
  put_list(list, {kName, kIsNbi, pe, list.device().value_or(kHost)}, where);
}

template <bool kIsNbi>
void putv_signal(
    nb::handle pairs, nb::handle signal, const nb::tuple& update, int pe, const nb::tuple& where) {
  constexpr const char* kName = kIsNbi ? "weft.putv_signal_nbi" : "weft.putv_signal";
  require_ready(kName);
  const List list(pairs, kName);
  const Memory word(signal, Memory::Use::Read,
                    kIsNbi ? "weft.putv_signal_nbi: signal" : "weft.putv_signal: signal");
  if (list.device().value_or(word.device()) != word.device()) {
    throw Failure(
        Kind::WrongDevice,
        std::string(kName) + ": the signal is not where the pairs are; make all on one device");
  }
  const weft_signal change = signal_of(word, update, kName);
  put_list(list, {kName, kIsNbi, pe, word.device(), &change}, where);
}

}  // namespace

void register_lists(nb::module_& module) {
  module.def("putv", &putv<false>);
  module.def("putv_nbi", &putv<true>);
  module.def("putv_signal", &putv_signal<false>);
  module.def("putv_signal_nbi", &putv_signal<true>);
}

}  // namespace weft::python
