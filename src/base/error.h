#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace lrnn {

// The one exception type users see. `what()` is a full sentence; `hint()` says what to do next.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, std::string hint = {})
      : std::runtime_error(what), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

template <class... Parts> std::string cat(const Parts&... parts) {
  std::ostringstream out;
  out << std::boolalpha;
  (out << ... << parts);
  return out.str();
}

template <class... Parts> void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw Error(cat(parts...));
}

}  // namespace lrnn
