// SPDX-License-Identifier: Apache-2.0
// DWARF 5, section 6.2 (and the same section of versions 2 to 4).
#include "platform/line_table.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace carina::platform {
namespace {

constexpr uint32_t kPathForm = 1, kFolderForm = 2;  // DW_LNCT_path, DW_LNCT_directory_index
/// More files than any firmware has. Rows need no limit: a line program produces at most one per byte.
constexpr size_t kMaxFiles = 1u << 16;

/// A cursor that records attempts to read past the end instead of performing them.
class Cursor {
 public:
  explicit Cursor(ByteSpan bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool atEnd() const { return !ok_ || at_ >= bytes_.size(); }
  size_t position() const { return at_; }
  uint64_t fixed(size_t size) {
    if (size > 8 || bytes_.size() - at_ < size) return failed();
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes_[at_ + i]) << 8 * i;
    at_ += size;
    return value;
  }
  uint8_t byte() { return static_cast<uint8_t>(fixed(1)); }
  uint64_t uleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; ok_; shift += 7) {
      const uint8_t part = byte();
      if (shift < 64) value |= uint64_t{part & 0x7fu} << shift;
      if ((part & 0x80) == 0) break;
    }
    return value;
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; ok_; shift += 7) {
      const uint8_t part = byte();
      if (shift < 64) value |= uint64_t{part & 0x7fu} << shift;
      if ((part & 0x80) != 0) continue;
      if (shift + 7 < 64 && (part & 0x40) != 0) value |= ~uint64_t{0} << (shift + 7);
      break;
    }
    return static_cast<int64_t>(value);
  }
  std::string_view text() {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto end = std::find(begin, bytes_.end(), std::byte{0});
    if (end == bytes_.end()) {
      failed();
      return {};
    }
    const std::string_view result(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                  static_cast<size_t>(end - begin));
    at_ += result.size() + 1;
    return result;
  }
  void skip(uint64_t count) {
    if (bytes_.size() - at_ < count) {
      failed();
    } else {
      at_ += count;
    }
  }
  /// A cursor over the next `count` bytes.
  Cursor part(uint64_t count) {
    const size_t from = at_;
    skip(count);
    return Cursor(ok_ ? bytes_.subspan(from, count) : ByteSpan());
  }

 private:
  uint64_t failed() {
    ok_ = false;
    at_ = bytes_.size();
    return 0;
  }

  ByteSpan bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

std::string joined(std::string_view folder, std::string_view name) {
  if (folder.empty() || (!name.empty() && name.front() == '/')) return std::string(name);
  return fmt::format("{}/{}", folder, name);
}

class UnitReader {
 public:
  UnitReader(const LineSections& sections, LineTable& table, std::map<std::string, uint32_t>& known)
      : sections_(sections), table_(table), known_(known) {}

  /// Reads one unit, without its length field.
  Status read(Cursor unit, bool wide) {
    offsetSize_ = wide ? 8 : 4;
    version_ = static_cast<uint32_t>(unit.fixed(2));
    if (version_ < 2 || version_ > 5)
      return fail(Code::UnknownVersion, "a line table has the unknown DWARF version {}", version_);
    if (version_ == 5) unit.skip(2);  // sizes of addresses and segment selectors
    Cursor header = unit.part(unit.fixed(offsetSize_));
    instructionSize_ = header.byte();
    if (version_ >= 4) header.byte();  // operations of a VLIW instruction
    header.byte();                     // whether rows begin statements: ignored
    lineBase_ = static_cast<int8_t>(header.byte());
    lineRange_ = header.byte();
    opcodeBase_ = header.byte();
    for (uint32_t i = 1; i < opcodeBase_; ++i) lengths_[i] = header.byte();
    if (version_ == 5) {
      CARINA_RETURN_IF_ERROR(readNames5(header));
    } else {
      readNames(header);
    }
    if (!header.ok() || !unit.ok() || lineRange_ == 0)
      return fail(Code::Damaged, "a line table has a damaged header");
    return run(unit);
  }

 private:
  void readNames(Cursor& header) {
    std::vector<std::string_view> folders{""};
    for (std::string_view name = header.text(); header.ok() && !name.empty(); name = header.text())
      folders.push_back(name);
    files_.push_back({});  // numbered from 1
    for (std::string_view name = header.text(); header.ok() && !name.empty(); name = header.text()) {
      addFile(folders, name, header.uleb());
      header.uleb();
      header.uleb();
    }
  }

  void addFile(const std::vector<std::string_view>& folders, std::string_view name, uint64_t folder) {
    files_.push_back(joined(folder < folders.size() ? folders[folder] : "", name));
  }

  /// Reads a value in a form that is used for names and their folders.
  Status value(Cursor& header, uint64_t form, std::string_view& text, uint64_t& number) {
    const auto stringOf = [&](ByteSpan section, uint64_t offset) {
      if (offset >= section.size()) return std::string_view();
      return Cursor(section.subspan(offset)).text();
    };
    switch (form) {
      case 0x08:  // string
        text = header.text();
        return {};
      case 0x0e:  // strp
        text = stringOf(sections_.strings, header.fixed(offsetSize_));
        return {};
      case 0x1f:  // line_strp
        text = stringOf(sections_.lineStrings, header.fixed(offsetSize_));
        return {};
      case 0x0b:
      case 0x05:
      case 0x06:
      case 0x07:
        number = header.fixed(form == 0x0b ? 1 : form == 0x05 ? 2 : form == 0x06 ? 4 : 8);
        return {};
      case 0x0f:  // udata
        number = header.uleb();
        return {};
      case 0x1e:  // data16, a checksum
        header.skip(16);
        return {};
      case 0x09:  // block
        header.skip(header.uleb());
        return {};
      default:
        return fail(Code::Damaged, "a line table has a file in the unknown form 0x{:x}", form);
    }
  }

  Status readEntries(Cursor& header, std::vector<std::string_view>& names, std::vector<uint64_t>& folders) {
    const uint32_t formats = header.byte();
    std::vector<std::pair<uint64_t, uint64_t>> format;
    for (uint32_t i = 0; i < formats; ++i) {
      const uint64_t content = header.uleb();
      format.emplace_back(content, header.uleb());
    }
    const uint64_t count = header.uleb();
    // The number of entries without bytes would be unlimited.
    if (formats == 0 && count != 0)
      return fail(Code::Damaged, "a line table lists files without describing their format");
    for (uint64_t i = 0; i < count && header.ok() && names.size() < kMaxFiles; ++i) {
      std::string_view name;
      uint64_t folder = 0;
      for (const auto& [content, form] : format) {
        std::string_view text;
        uint64_t number = 0;
        CARINA_RETURN_IF_ERROR(value(header, form, text, number));
        if (content == kPathForm) name = text;
        if (content == kFolderForm) folder = number;
      }
      names.push_back(name);
      folders.push_back(folder);
    }
    return {};
  }

  Status readNames5(Cursor& header) {
    std::vector<std::string_view> folders, names;
    std::vector<uint64_t> unused, folderOf;
    CARINA_RETURN_IF_ERROR(readEntries(header, folders, unused));
    CARINA_RETURN_IF_ERROR(readEntries(header, names, folderOf));
    // All folders are relative to the first one, the compilation directory.
    std::vector<std::string> whole;
    whole.reserve(folders.size());
    for (const std::string_view folder : folders)
      whole.push_back(whole.empty() ? std::string(folder) : joined(folders[0], folder));
    const std::vector<std::string_view> views(whole.begin(), whole.end());
    for (size_t i = 0; i < names.size(); ++i) addFile(views, names[i], folderOf[i]);
    return {};
  }

  struct Row {
    uint64_t address = 0;
    uint64_t file = 1;
    int64_t line = 1;
  };

  /// Completes a row: addresses from the previous row up to this one belong to the previous row.
  void emit(const Row& row, bool endOfSequence) {
    if (open_ && row.address > before_.address && row.address <= UINT32_MAX && before_.file < files_.size()) {
      const std::string& name = files_[before_.file];
      const auto [at, isNew] = known_.try_emplace(name, static_cast<uint32_t>(table_.files.size()));
      if (isNew) table_.files.push_back(name);
      const bool named = before_.line > 0 && before_.line <= INT32_MAX;
      table_.ranges.push_back({static_cast<uint32_t>(before_.address), static_cast<uint32_t>(row.address),
                               at->second, named ? static_cast<uint32_t>(before_.line) : 0});
    }
    before_ = row;
    open_ = !endOfSequence;
  }

  Status run(Cursor program) {
    Row row;
    while (!program.atEnd()) {
      const uint8_t code = program.byte();
      if (code >= opcodeBase_) {
        const uint32_t special = code - uint32_t{opcodeBase_};
        row.address += uint64_t{special / lineRange_} * instructionSize_;
        row.line += lineBase_ + static_cast<int64_t>(special % lineRange_);
        emit(row, false);
        continue;
      }
      switch (code) {
        case 0: {
          Cursor extended = program.part(program.uleb());
          const uint8_t what = extended.byte();
          if (what == 1) {
            emit(row, true);
            row = {};
          } else if (what == 2) {
            row.address = extended.fixed(4);
          }
          break;
        }
        case 1:
          emit(row, false);
          break;
        case 2:
          row.address += program.uleb() * instructionSize_;
          break;
        case 3:
          row.line =
              static_cast<int64_t>(static_cast<uint64_t>(row.line) + static_cast<uint64_t>(program.sleb()));
          break;
        case 4:
          row.file = program.uleb();
          break;
        case 8:
          row.address += uint64_t{(255u - opcodeBase_) / lineRange_} * instructionSize_;
          break;
        case 9:
          row.address += program.fixed(2);
          break;
        default:
          for (uint32_t i = 0; i < lengths_[code]; ++i) program.uleb();
          break;
      }
    }
    return program.ok() ? Status() : fail(Code::Damaged, "a line table is cut off");
  }

  const LineSections& sections_;
  LineTable& table_;
  std::map<std::string, uint32_t>& known_;
  size_t offsetSize_ = 4;
  uint32_t version_ = 0;
  uint8_t instructionSize_ = 1, lineRange_ = 1, opcodeBase_ = 1;
  int8_t lineBase_ = 0;
  uint8_t lengths_[256] = {};
  std::vector<std::string> files_;  // of this unit
  Row before_;
  bool open_ = false;
};

}  // namespace

Result<LineTable> readLineTable(const LineSections& sections) {
  LineTable table;
  std::map<std::string, uint32_t> known;
  Cursor all(sections.lines);
  while (!all.atEnd()) {
    uint64_t length = all.fixed(4);
    const bool wide = length == 0xffffffff;
    if (wide) length = all.fixed(8);
    const Cursor unit = all.part(length);
    if (!all.ok()) return fail(Code::Damaged, "the line tables are cut off");
    CARINA_RETURN_IF_ERROR(UnitReader(sections, table, known).read(unit, wide));
  }
  std::stable_sort(table.ranges.begin(), table.ranges.end(),
                   [](const SourceRange& a, const SourceRange& b) { return a.begin < b.begin; });
  return table;
}

}  // namespace carina::platform
