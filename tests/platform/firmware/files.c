// SPDX-License-Identifier: Apache-2.0
// The C library over semihosting: arguments, files, console, exit code.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The C library's rename() would link and unlink.
static unsigned rename_by_semihosting(const char* from, const char* to) {
  const unsigned block[4] = {(unsigned)from, strlen(from), (unsigned)to, strlen(to)};
  register unsigned r0 __asm("r0") = 0x0f;
  register const unsigned* r1 __asm("r1") = block;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

int main(int argc, char** argv) {
  printf("argc %d, %s %s\n", argc, argv[1], argv[2]);
  FILE* input = fopen(argv[1], "rb");
  if (input == NULL) {
    printf("cannot open %s\n", argv[1]);
    return 4;
  }
  fseek(input, 0, SEEK_END);
  const long size = ftell(input);
  rewind(input);
  unsigned char* bytes = malloc((size_t)size);
  if (bytes == NULL || fread(bytes, 1, (size_t)size, input) != (size_t)size) return 5;
  fclose(input);
  unsigned sum = 0;
  for (long i = 0; i < size; ++i) sum = sum * 31 + bytes[i];
  printf("%ld bytes, sum %u, half %.2f\n", size, sum, (double)size / 2);
  for (long i = 0; i < size / 2; ++i) {
    const unsigned char swapped = bytes[i];
    bytes[i] = bytes[size - 1 - i];
    bytes[size - 1 - i] = swapped;
  }
  FILE* output = fopen(argv[2], "wb");
  if (output == NULL || fwrite(bytes, 1, (size_t)size, output) != (size_t)size || fclose(output) != 0)
    return 6;
  if (fopen("../outside", "wb") != NULL || fopen("/etc/passwd", "rb") != NULL) return 8;
  if (rename_by_semihosting(argv[2], "renamed.bin") != 0 || remove(argv[1]) != 0) return 10;
  exit(7);
}
