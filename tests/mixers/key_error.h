#pragma once
#include <string>

#include "base/error.h"
#include "mixers/mixer.h"

namespace lrnn::mixers {

// What the settings of a mixer of width 8 are refused with; they begin in line 2 of x.yaml.
inline std::string key_error(const std::string& mixer, const std::string& fields) {
  try {
    make(8, Section::from_text("name: " + mixer + "\n" + fields, "x.yaml"));
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace lrnn::mixers
