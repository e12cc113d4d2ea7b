// SPDX-License-Identifier: Apache-2.0
// The program that owns the precompiled headers of all test programs (cmake/CarinaTargets.cmake): they must
// be compiled with the flags of an executable.
int main() {
  return 0;
}
