//===- Page.cpp - The page with its data ----------------------------------===//
#include "fp4/Explorer/Explorer.h"
#include "fp4/Support/JsonText.h"

namespace fp4::explorer {

/// The page, made of the files in page/ (embed.cmake).
static constexpr const char *kPage[] = {
#include "explorer.html.inc"
};

Json toJson(Text text) {
  Json object = {{"name", std::move(text.name)},
                 {"module", std::move(text.module)},
                 {"text", std::move(text.text)},
                 {"bases", std::move(text.bases)},
                 {"origins", std::move(text.origins)}};
  if (!text.base.empty())
    object["base"] = std::move(text.base);
  return object;
}

/// A '<' in the data could end the script that holds it.
std::string makePage(const Json &data) {
  constexpr std::string_view mark = "FP4_DATA";
  std::string page;
  for (const char *part : kPage)
    page += part;
  std::string safe;
  for (char c : jsonText(data))
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return page.replace(page.find(mark), mark.size(), safe);
}

} // namespace fp4::explorer
