#include "fp4/Support/Error.h"

std::string fp4::format(const Error &error) {
  std::string text = "error: " + error.message + "\n";
  if (!error.note.empty())
    text += "note: " + error.note + "\n";
  return text;
}
