# Run at build time: writes OUT, which defines outbox::relay::status_page with the text of FILE.
file(READ ${FILE} text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length) # a string literal may be split, and compilers bound one piece
  string(SUBSTRING "${text}" ${at} 15000 piece)
  string(APPEND pieces "R\"page~(${piece})page~\"\n")
  math(EXPR at "${at} + 15000")
endwhile()
file(WRITE ${OUT} "#include \"relay/admin/status_page.hpp\"

namespace outbox::relay {
const std::string_view status_page = ${pieces};
}  // namespace outbox::relay
")
