#include "text/template/clock.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>

namespace decant::text {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int day_of_year(const CivilTime& t) {  // from 0
  static constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return kBefore[(t.month - 1) % 12] + t.day - 1 + (t.month > 2 && is_leap(t.year) ? 1 : 0);
}

int day_of_week(const CivilTime& t) {  // Sunday is 0
  const int y = t.year - 1;
  return static_cast<int>((int64_t{y} * 365 + y / 4 - y / 100 + y / 400 + day_of_year(t) + 1) % 7);
}

int weeks_in_year(int year) {
  const CivilTime first{year, 1, 1};
  const int day = day_of_week(first);
  return day == 4 || (day == 3 && is_leap(year)) ? 53 : 52;
}

std::pair<int, int> iso_week(const CivilTime& t) {
  const int week = (day_of_year(t) - (day_of_week(t) + 6) % 7 + 10) / 7;
  if (week < 1) return {t.year - 1, weeks_in_year(t.year - 1)};
  if (week > weeks_in_year(t.year)) return {t.year + 1, 1};
  return {t.year, week};
}

std::string padded(int value, int width, char pad) {
  if (pad == '-') return std::to_string(value);
  return pad == '_' ? fmt::format("{:{}}", value, width) : fmt::format("{:0{}}", value, width);
}

std::string one_code(const CivilTime& t, char code, char flag) {
  const auto number = [flag](int value, int width, char pad = '0') {
    return padded(value, width, flag == '-' || flag == '_' || flag == '0' ? flag : pad);
  };
  const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  const int weekday = day_of_week(t);
  switch (code) {
    case 'Y':
      return std::to_string(t.year);
    case 'C':
      return number(t.year / 100, 2);
    case 'y':
      return number(t.year % 100, 2);
    case 'm':
      return number(t.month, 2);
    case 'd':
      return number(t.day, 2);
    case 'e':
      return number(t.day, 2, '_');
    case 'H':
      return number(t.hour, 2);
    case 'I':
      return number(hour12, 2);
    case 'k':
      return number(t.hour, 2, '_');
    case 'l':
      return number(hour12, 2, '_');
    case 'M':
      return number(t.minute, 2);
    case 'S':
      return number(t.second, 2);
    case 'f':
      return "000000";
    case 'j':
      return number(day_of_year(t) + 1, 3);
    case 'p':
      return t.hour < 12 ? "AM" : "PM";
    case 'P':
      return t.hour < 12 ? "am" : "pm";
    case 'A':
      return std::string(kDays[weekday]);
    case 'a':
      return std::string(kDays[weekday].substr(0, 3));
    case 'B':
      return std::string(kMonths[(t.month - 1) % 12]);
    case 'b':
    case 'h':
      return std::string(kMonths[(t.month - 1) % 12].substr(0, 3));
    case 'u':
      return std::to_string(weekday == 0 ? 7 : weekday);
    case 'w':
      return std::to_string(weekday);
    case 'U':
      return number((day_of_year(t) + 7 - weekday) / 7, 2);
    case 'W':
      return number((day_of_year(t) + 7 - (weekday + 6) % 7) / 7, 2);
    case 'V':
      return number(iso_week(t).second, 2);
    case 'G':
      return std::to_string(iso_week(t).first);
    case 'g':
      return number(iso_week(t).first % 100, 2);
    case 'F':
      return format_time(t, "%Y-%m-%d");
    case 'T':
    case 'X':
      return format_time(t, "%H:%M:%S");
    case 'R':
      return format_time(t, "%H:%M");
    case 'D':
    case 'x':
      return format_time(t, "%m/%d/%y");
    case 'r':
      return format_time(t, "%I:%M:%S %p");
    case 'c':
      return format_time(t, "%a %b %e %H:%M:%S %Y");
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    case 'z':
    case 'Z':
      return "";
    default:
      return flag == '\0' ? fmt::format("%{}", code) : fmt::format("%{}{}", flag, code);
  }
}

}  // namespace

CivilTime local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec};
}

Result<CivilTime> parse_civil_time(std::string_view text) {
  static constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  CivilTime t;
  int* const fields[] = {&t.year, &t.month, &t.day, &t.hour, &t.minute, &t.second};
  bool ok = text.size() == kShape.size() || text.size() == 10;
  for (size_t i = 0; ok && i < text.size(); ++i) {
    ok = kShape[i] == 'd' ? text[i] >= '0' && text[i] <= '9'
                          : text[i] == kShape[i] || (kShape[i] == 'T' && text[i] == ' ');
  }
  for (size_t i = 0, at = 0; ok && at < text.size(); ++i) {
    const size_t n = i == 0 ? 4 : 2;
    std::from_chars(text.data() + at, text.data() + at + n, *fields[i]);
    at += n + 1;
  }
  static constexpr int kLengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  ok = ok && t.year >= 1 && t.month >= 1 && t.month <= 12 && t.day >= 1 && t.day <= kLengths[t.month - 1] &&
       (t.month != 2 || t.day < 29 || is_leap(t.year)) && t.hour < 24 && t.minute < 60 && t.second < 60;
  if (!ok) return invalid_argument(fmt::format("'{}' is not a time like 2026-01-05T09:03:07", text));
  return t;
}

std::string format_time(const CivilTime& t, std::string_view format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    char flag = '\0';
    if (i + 2 < format.size() && std::string_view("-_0^").find(format[i + 1]) != std::string_view::npos)
      flag = format[++i];
    std::string piece = one_code(t, format[++i], flag);
    if (flag == '^') {
      for (char& c : piece) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
    out += piece;
  }
  return out;
}

}  // namespace decant::text
