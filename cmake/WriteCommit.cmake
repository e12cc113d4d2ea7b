# cmake -DSOURCE=repository -DOUT=file -P WriteCommit.cmake
# Writes the commit of the checkout, for `carina --version`; empty where there is no repository.
execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=10 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
file(CONFIGURE OUTPUT "${OUT}" CONTENT "#define CARINA_COMMIT \"${commit}\"\n")
