// The compiled half of fmt, once: LibTorch brings the headers alone, and as headers alone they cost
// every file that formats a number four seconds.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE

template FMT_API auto detail::dragonbox::to_decimal(float x) -> dragonbox::decimal_fp<float>;
template FMT_API auto detail::dragonbox::to_decimal(double x) -> dragonbox::decimal_fp<double>;
template FMT_API auto detail::thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto detail::decimal_point_impl(locale_ref) -> char;
template FMT_API void detail::buffer<char>::append(const char*, const char*);

FMT_END_NAMESPACE
