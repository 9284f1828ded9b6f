# Writes the files of the page as string literals of C++, one behind the other:
#   cmake "-DFILES=a.html;b.css;c.js" -DOUT=page.inc -P embed.cmake
set(_text "")
foreach(_file IN LISTS FILES)
  file(READ ${_file} _content)
  if(_file MATCHES "\\.css$")
    set(_content "<style>\n${_content}</style>\n")
  elseif(_file MATCHES "\\.js$")
    set(_content "<script>\n${_content}</script>\n")
  endif()
  string(APPEND _text "R\"fp4page(${_content})fp4page\",\n")
endforeach()
file(WRITE ${OUT} "${_text}")
