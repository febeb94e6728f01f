// A callable borrowed for the duration of one call: two words, no allocation. The data path uses it
// where a std::function would allocate for a capture of more than two words.
//
// The callable must outlive the reference, so a parameter of this type is never stored.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace weft {

template <typename Signature>
class FunctionRef;

template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  // Implicit, so that a lambda can be passed as a FunctionRef.
  template <typename Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, FunctionRef> &&
             std::is_invocable_r_v<Result, Callable&, Arguments...>)
  FunctionRef(Callable&& callable)  // NOLINT(google-explicit-constructor): see above
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace weft
