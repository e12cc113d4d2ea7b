// SPDX-License-Identifier: Apache-2.0
// The program that owns the precompiled headers of all test programs (cmake/CarinaTargets.cmake): they need
// the flags of a program.
int main() {
  return 0;
}
