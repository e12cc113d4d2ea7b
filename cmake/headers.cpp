// SPDX-License-Identifier: Apache-2.0
// The file of the targets that own the libraries' precompiled headers (CarinaTargets.cmake).
