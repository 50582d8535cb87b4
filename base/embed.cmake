# Text files in the program, so that an installed fuseplan needs no source tree.
#
# embed_texts(TARGET GROUP...) links into TARGET each file of each GROUP, a variable with a list of paths
# below the project's root.  A C file that includes "embedded.h" finds for each group a macro of the
# group's name in capitals, a list of X(symbol, "file name", "path"), and in EMBEDDED(X) all of them, each once.
# Behind each symbol stand the file's bytes and a NUL: base/embed.S.
function(embed_texts target)
  set(list "/* Made by base/embed.cmake. */")
  set(all "")
  set(depends "")
  foreach(group IN LISTS ARGN)
    string(TOUPPER ${group} macro)
    string(APPEND list "\n#define ${macro}(X)")
    foreach(file IN LISTS ${group})
      get_filename_component(name ${file} NAME)
      string(MAKE_C_IDENTIFIER ${file} symbol)
      set(entry " \\\n    X(${symbol}, \"${name}\", \"${PROJECT_SOURCE_DIR}/${file}\")")
      string(APPEND list "${entry}")
      if(NOT "${PROJECT_SOURCE_DIR}/${file}" IN_LIST depends)
        string(APPEND all "${entry}")
        list(APPEND depends ${PROJECT_SOURCE_DIR}/${file})
      endif()
    endforeach()
  endforeach()
  set(source ${PROJECT_SOURCE_DIR}/base/embed.S)
  file(CONFIGURE OUTPUT embedded.h CONTENT "${list}\n#define EMBEDDED(X)${all}\n" @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${depends}")
  target_sources(${target} PRIVATE ${source})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
